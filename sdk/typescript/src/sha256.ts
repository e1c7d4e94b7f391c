/** SHA-256, at once and everywhere: that of browsers is only there on pages that came over TLS, and only with a promise. */

const WORDS = 64;

/** The first bits of the fractions of a root of the first primes, as the standard has it. */
function fractions(root: number, count: number): Uint32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) {
    let prime = true;
    for (let by = 2; by * by <= n; by++) prime &&= n % by !== 0;
    if (prime) found.push(fraction(n, root));
  }
  return Uint32Array.from(found);
}

/** In whole numbers: a rounded root would be wrong in its last bit. */
function fraction(n: number, root: number): number {
  const wanted = BigInt(n) << BigInt(32 * root);
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(root) <= wanted) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

const ROUNDS = fractions(3, WORDS);
const BEGINNING = fractions(2, 8);

function turned(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function at(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function expand(words: Uint32Array, block: DataView, offset: number): void {
  for (let i = 0; i < 16; i++) words[i] = block.getUint32(offset + 4 * i);
  for (let i = 16; i < WORDS; i++) {
    const [far, near] = [at(words, i - 15), at(words, i - 2)];
    const first = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
    const second = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
    words[i] = at(words, i - 16) + first + at(words, i - 7) + second;
  }
}

function mix(state: Uint32Array, words: Uint32Array): void {
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < WORDS; i++) {
    const first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + at(ROUNDS, i) + at(words, i)) | 0;
    const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = at(state, i) + word));
}

/** Of text as UTF-8, in hexadecimal. */
export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const [state, words] = [Uint32Array.from(BEGINNING), new Uint32Array(WORDS)];
  for (let offset = 0; offset < padded.length; offset += 64) {
    expand(words, view, offset);
    mix(state, words);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}
