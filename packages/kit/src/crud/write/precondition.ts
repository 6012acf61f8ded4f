import { readIfMatch, rowVersionOf } from '../../http/respond/conditional-request.ts';

/** What `If-Match` asks for: any row, or one of these versions. */
export type Precondition = { readonly any: true } | { readonly any: false; readonly versions: readonly string[] };

/** The precondition of an item that carries the version the client read. */
export function ofVersion(version: number | undefined): Precondition | undefined {
  return version === undefined ? undefined : { any: false, versions: [String(version)] };
}

/** What `If-Match` says about the row: of a tag only the part before `-` is the version. Undefined without the header. */
export function preconditionOf(header: string | undefined): Precondition | undefined {
  const wanted = readIfMatch(header);
  return wanted === undefined || wanted.any ? wanted : { any: false, versions: wanted.tags.map(rowVersionOf) };
}
