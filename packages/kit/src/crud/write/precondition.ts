/** What `If-Match` asks for: any row, or one of these versions. */
export type Precondition = { readonly any: true } | { readonly any: false; readonly versions: readonly string[] };

/** The precondition of an item that carries the version the client read. */
export function ofVersion(version: number | undefined): Precondition | undefined {
  return version === undefined ? undefined : { any: false, versions: [String(version)] };
}

/** Reads `If-Match`. Weak tags never match; of a tag only the part before `-` is the version. Undefined without the header. */
export function readIfMatch(header: string | undefined): Precondition | undefined {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return { any: true };
  return { any: false, versions: tagsOf(header).flatMap(({ tag, weak }) => (weak ? [] : [tag.split('-', 1)[0] as string])) };
}

/** Whether `If-None-Match` names the tag: weak comparison, a list, or `*`. */
export function matchesNone(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  const bare = etag.slice(1, -1);
  return tagsOf(header).some(({ tag }) => tag === bare);
}

function tagsOf(header: string): { readonly tag: string; readonly weak: boolean }[] {
  return [...header.slice(0, 4096).matchAll(/(W\/)?"([^"]*)"/g)].map(([, weak, tag = '']) => ({ tag, weak: weak !== undefined }));
}
