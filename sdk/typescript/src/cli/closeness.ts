/** Which known words are near to one that was mistyped: the measure of Python's difflib, so that every command line suggests the same. */

const CUTOFF = 0.6;
const MOST = 3;

/** The nearest first; of equally near ones the later in the alphabet. */
export function near(word: string, known: readonly string[], most = MOST): string[] {
  return known
    .map((text) => ({ text, score: likeness([...text], [...word]) }))
    .filter(({ score }) => score >= CUTOFF)
    .sort((a, b) => b.score - a.score || (a.text < b.text ? 1 : -1))
    .slice(0, most)
    .map(({ text }) => text);
}

/** From 0 to 1: twice the letters that match, of all letters. */
function likeness(a: string[], b: string[]): number {
  const all = a.length + b.length;
  return all === 0 ? 1 : (2 * matching(a, b)) / all;
}

function matching(a: string[], b: string[]): number {
  const { at, of, size } = longest(a, b);
  if (size === 0) return 0;
  return size + matching(a.slice(0, at), b.slice(0, of)) + matching(a.slice(at + size), b.slice(of + size));
}

/** The longest run of letters that both have; the first of several. */
function longest(a: string[], b: string[]): { at: number; of: number; size: number } {
  let best = { at: 0, of: 0, size: 0 };
  let before: number[] = [];
  for (let i = 0; i < a.length; i++) {
    const row = b.map((letter, j) => (letter === a[i] ? (before[j - 1] ?? 0) + 1 : 0));
    row.forEach((size, j) => {
      if (size > best.size) best = { at: i - size + 1, of: j - size + 1, size };
    });
    before = row;
  }
  return best;
}
