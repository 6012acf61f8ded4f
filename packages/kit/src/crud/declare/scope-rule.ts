import type { Permission } from '../../permissions/permission.ts';

/** Rows by one column: those of a user, or those of a tenant. */
interface ScopeRule<N extends string> {
  /**
   * The empty text, for rows of nobody: a text column that is never null. Nobody reaches them by this rule, and statements say so in the
   * words of a partial index: `owner_id <> ''`.
   */
  readonly none?: '';
  /** Callers that it admits see the rows of everyone. */
  readonly unless?: Permission;
  readonly column: N;
}

export interface OwnerRule<N extends string = string> extends ScopeRule<N> {
  /** The column that contains the id of the user. */
  readonly column: N;
}

/** With `none`, callers without a tenant reach the rows of no tenant, and an app without tenants has rows of all. */
export interface TenantRule<N extends string = string> extends ScopeRule<N> {
  /** The column that contains the key of the tenant. */
  readonly column: N;
}

/** The rule in its long form. */
export function scopeRule<R extends OwnerRule | TenantRule>(rule: string | R | undefined): R | undefined {
  return typeof rule === 'string' ? ({ column: rule } as R) : rule;
}

/** The column of `tenant` or `owner`. */
export function scopeColumn(rule: string | OwnerRule | TenantRule | undefined): string | undefined {
  return scopeRule(rule)?.column;
}
