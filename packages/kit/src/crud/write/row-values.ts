import { storedIdentity } from '../../db/sql/identity-value.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { absentValue } from '../input/absent-value.ts';
import type { Item } from '../declare/item.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Intent } from './intent.ts';

/** The values of a row that no client and no hook decides: tenant, owner, parent, version and user stamps. */
export class RowValues {
  readonly #policy: Policy;
  readonly #stamps: { readonly created: readonly string[]; readonly updated: readonly string[] };
  readonly #neverChanged: readonly string[];

  constructor(policy: Policy) {
    this.#policy = policy;
    const stamped = (role: string) => policy.statements.columns.filter(({ settings }) => settings.stamp === role).map(({ name }) => name);
    this.#stamps = { created: [...stamped('created_by'), ...stamped('updated_by')], updated: stamped('updated_by') };
    const fixed = [policy.key.name, ...policy.model.primaryKey, policy.tenant?.column, policy.owner?.column];
    this.#neverChanged = [...new Set(fixed)].filter((name) => name !== undefined);
  }

  /** What a create writes: the policy and the address set tenant, owner, parent and user stamps. The version is always the first one. */
  created(request: CrudRequest, values: Item, { fixed }: Pick<Intent, 'fixed'>): Item {
    const policy = this.#policy;
    const { user, tenant: key } = request;
    const all: Item = { ...values, ...fixed };
    const { tenant, audienceRule: audience } = policy;
    if (tenant !== undefined && !(audience?.tenant === 'all' && tenant.column in values)) {
      if (key === null && tenant.none === undefined) throw coreErrors.tenant_required();
      all[tenant.column] = key === null ? tenant.none : storedIdentity(policy.statements.column(tenant.column), key);
    }
    // In an audience rows belong to others: a form, a hook or a program may name the owner of a new row.
    if (policy.owner !== undefined && !(audience !== undefined && policy.owner.column in values)) {
      // Anonymous callers may see rows that say so; a row they make would have no owner.
      if (user === null) throw coreErrors.not_authenticated();
      all[policy.owner.column] = storedIdentity(policy.statements.column(policy.owner.column), user.id);
    }
    for (const name of this.#stamps.created) all[name] = user?.id ?? null;
    const version = policy.options.version as string | undefined;
    if (version !== undefined) all[version] = undefined;
    return all;
  }

  /** A row as it would be made, with the defaults of its columns: what rules about a new row look at. */
  made(request: CrudRequest, values: Item, intent: Pick<Intent, 'fixed'>): Item {
    const policy = this.#policy;
    const row = this.created(request, values, intent);
    const now = request.clock.now();
    for (const { name } of policy.statements.columns) if (row[name] === undefined) row[name] = absentValue(policy.settingsOf(name), now);
    return row;
  }

  /** What an update writes, with its stamps. Key, tenant, owner and parent never change, whatever a hook says. */
  updated(request: CrudRequest, values: Item, { fixed = {} }: Pick<Intent, 'fixed'>): Item {
    const all: Item = { ...values };
    for (const name of [...this.#neverChanged, ...Object.keys(fixed)]) all[name] = undefined;
    return { ...all, ...this.stamps(request) };
  }

  stamps({ user }: CrudRequest): Item {
    return Object.fromEntries(this.#stamps.updated.map((name) => [name, user?.id ?? null]));
  }
}
