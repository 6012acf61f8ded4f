import { shortHash } from '../../http/respond/conditional-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Shape } from './shape.ts';

/** What the tag of an answer is made of. */
export type TagSource =
  /** A row with a version: the tag is known before the body is. */
  | { readonly kind: 'version'; readonly tag: string }
  /** A row with a version whose body holds more than the row: relations, computed fields, rules about the row. */
  | { readonly kind: 'version-body'; readonly version: string }
  /** No version, or a list: good for 304 only. */
  | { readonly kind: 'body' };

/** The tag of a row as this caller sees it. */
export function tagOf({ options }: Policy, shape: Shape, version: unknown): TagSource {
  if (options.version === undefined) return { kind: 'body' };
  const text = String(version);
  if (hasMoreThanColumns(shape)) return { kind: 'version-body', version: text };
  return { kind: 'version', tag: shape.isWhole ? `"${text}"` : `"${text}-${shortHash(shape.key)}"` };
}

function hasMoreThanColumns({ edges, computed, columns }: Shape): boolean {
  return edges.length > 0 || computed.length > 0 || columns.some(({ shown }) => shown === 'row');
}

export function bodyTag(source: Exclude<TagSource, { kind: 'version' }>, body: string): string {
  const digest = shortHash(body);
  return source.kind === 'body' ? `"${digest}"` : `"${source.version}-${digest}"`;
}
