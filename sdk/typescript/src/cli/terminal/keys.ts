/** Ctrl-C while the prompt is not there; at the prompt it is a key as others. */

export class Keys {
  private readonly meanings: (() => void)[] = [];
  private early = false;

  /** A new prompt: what was pressed before it is not for what is typed there. */
  forget(): void {
    this.early = false;
  }

  /** Right behind Enter, before anything has begun, it is kept for what is about to. */
  hear(): void {
    const meant = this.meanings.at(-1);
    if (meant !== undefined) meant();
    else this.early = true;
  }

  async mean<T>(pressed: () => void, work: () => Promise<T>): Promise<T> {
    this.meanings.push(pressed);
    try {
      const going = work();
      if (this.early) {
        this.early = false;
        pressed();
      }
      return await going;
    } finally {
      this.meanings.pop();
    }
  }
}
