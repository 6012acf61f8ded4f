import { requireArguments } from '../options/read-options.ts';
import { aList, text } from '../options/value-rule.ts';
/** `*`, `<resource>:*` or `<resource>:<action>`. */
const scopeGrammar = /^(?:\*|[a-z0-9_.-]{1,64}:(?:\*|[a-z0-9_.-]{1,64}))$/;
const concreteGrammar = /^[a-z0-9_.-]{1,64}:[a-z0-9_.-]{1,64}$/;

export function isScope(value: unknown): value is string {
  return typeof value === 'string' && scopeGrammar.test(value);
}

/** A scope an operation can require: no wildcard. */
export function isConcreteScope(value: unknown): value is string {
  return typeof value === 'string' && concreteGrammar.test(value);
}

/** Metadata of an operation: the scope a credential must carry. `route.get('/', { ...requiresScope('orders:read'), permission: hasScopes() }, …)` */
export function requiresScope<const S extends string>(scope: S): { readonly scope: S } {
  if (!isConcreteScope(scope)) throw new TypeError(`An operation requires one scope such as "orders:read", not ${JSON.stringify(scope)}.`);
  return { scope };
}

/**
 * Whether the granted scopes include the needed one. `needed` may itself be a wildcard (handing out `orders:*`): only an equal or wider
 * wildcard covers it, never a list of concrete scopes.
 */
export function scopeCovers(granted: readonly string[], needed: string): boolean {
  // Called with every request of a scoped credential: the check costs nothing while it is passed.
  if (!Array.isArray(granted) || typeof needed !== 'string')
    requireArguments('scopeCovers()', { granted, needed }, { granted: aList, needed: text });
  const colon = needed.indexOf(':');
  const wholeResource = colon === -1 ? undefined : `${needed.slice(0, colon)}:*`;
  for (const scope of granted) {
    if (scope === '*' || scope === needed || scope === wholeResource) return true;
  }
  return false;
}

/** De-duplicated and sorted: the stored form. */
export function normaliseScopes(scopes: readonly string[]): string[] {
  return [...new Set(scopes)].sort();
}
