import type { Encoding } from '../document/encode.ts';

/** The encoding of the response: the one the caller prefers; Brotli before gzip when it has no preference. */
export function chooseEncoding(header: string | undefined): Encoding {
  if (header === undefined || header === '') return 'identity';
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    // Split and trimmed in two steps: one expression for both takes half a second on a header full of blanks.
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    const weight = quality === undefined ? 1 : Number(quality.slice(2));
    weights.set(name, Number.isNaN(weight) ? 0 : weight);
  }
  const weightOf = (name: string): number => weights.get(name) ?? weights.get('*') ?? 0;
  const brotli = weightOf('br');
  const gzip = Math.max(weightOf('gzip'), weights.get('x-gzip') ?? 0);
  const identity = weights.get('identity') ?? 0;
  if (brotli > 0 && brotli >= gzip && brotli >= identity) return 'br';
  return gzip > 0 && gzip >= identity ? 'gzip' : 'identity';
}

/** The first of `tags` that an If-None-Match header names. The comparison is weak, as RFC 9110 asks; `*` names all of them. */
export function matchingTag(header: string, tags: readonly string[]): string | undefined {
  if (header.trim() === '*') return tags[0];
  const named = new Set(header.split(',').map((tag) => tag.trim().replace(/^W\//, '')));
  return tags.find((tag) => named.has(tag));
}
