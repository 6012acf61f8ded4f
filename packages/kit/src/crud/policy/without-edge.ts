import { isPlainObject } from '../../options/value-rule.ts';

/** A condition on rows whose parent the caller sees: that the caller sees it, `{ endpoint: { is: {} } }`, is left out. */
export function withoutEdge(where: unknown, edge: string): unknown {
  if (!isPlainObject(where)) return where;
  return Object.fromEntries(
    Object.entries(where).flatMap(([name, inner]) => {
      if (name === edge && isVisible(inner)) return [];
      return [[name, name === 'and' && Array.isArray(inner) ? inner.map((each) => withoutEdge(each, edge)) : inner]];
    }),
  );
}

function isVisible(inner: unknown): boolean {
  if (!isPlainObject(inner) || Object.keys(inner).length !== 1) return false;
  const { is } = inner as { readonly is?: unknown };
  return isPlainObject(is) && Object.keys(is).length === 0;
}
