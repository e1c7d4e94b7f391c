/** Something that happens once, and can be waited for. */

export class Once<T> {
  readonly promise: Promise<T>;
  given = false;
  private resolve: (value: T) => void = () => undefined;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  give(value: T): void {
    this.given = true;
    this.resolve(value);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}
