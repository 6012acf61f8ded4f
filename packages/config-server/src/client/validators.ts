/** What tells two versions of a document apart: the entity tag and the generation, as they arrive from a header or a cache file. */

// An entity tag is sent back verbatim in a header, so only what RFC 9110 allows inside one is kept.
const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,256}"$/;

export function parseEtag(value: unknown): string | undefined {
  return typeof value === 'string' && ETAG.test(value) ? value : undefined;
}

export function parseGeneration(value: unknown): number | undefined {
  const generation = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(generation) && (generation as number) >= 0 ? (generation as number) : undefined;
}
