import { ruleResult } from '../../../auth/rights/rule-result.ts';
import { type AccessContext, VIEW } from '../../../crud/declare/row-access.ts';
import { limits } from '../../../crud/declare/limits.ts';
import type { Db } from '../../../db/engine/db.ts';
import { identityValue } from '../../../db/sql/identity-value.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { subjectsOf } from '../caller/caller-subjects.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { grantsState } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { GrantSql } from './grant-sql.ts';

/** Why changes of what decides about the objects cannot be followed. */
export function liveGrantsFault({ backend, parent, through }: ObjectActions): string | undefined {
  if (backend !== undefined) return `the backend "${backend.name}" decides, whose changes are not followed`;
  if (parent !== undefined) return `grants on "${parent.type}" count for its rows (through "${through}"), whose changes are not followed`;
  return undefined;
}

/**
 * The objects that each caller was granted, as a list of keys: the rows of a live list are decided by columns. Two statements for all callers: their groups, and
 * the grants. Undefined: more objects than a live list has.
 */
export async function grantedRows(
  declaration: ObjectActions,
  contexts: readonly AccessContext[],
): Promise<readonly (Where | boolean | undefined)[]> {
  const askers = await knownAskers(contexts);
  const asking = askers.filter(({ user }) => user === null || (user.is_active && !user.is_superuser));
  const objects = await objectsBySubject(declaration, contexts[0]?.db, asking);
  return askers.map((asker) => {
    const { user } = asker;
    if (user !== null && !user.is_active) return false;
    if (user?.is_superuser === true) return true;
    const ids = new Set(subjectsOf(declaration, asker).flatMap((subject) => objects.get(placeOf(declaration, asker, subject)) ?? []));
    if (ids.size > limits.liveRows) return undefined;
    const keys = [...ids].toSorted().flatMap((id) => identityValue(declaration.key, id) ?? []);
    return keys.length === 0 ? false : ({ [declaration.key.name]: { in: keys } } as Where);
  });
}

/** The callers with their groups: of all with one statement, where the directory has one. */
async function knownAskers(contexts: readonly AccessContext[]): Promise<KnownAsker[]> {
  const [first] = contexts;
  if (first === undefined) return [];
  const { groups } = grantsState.of(first.db);
  const asked = contexts.flatMap(({ caller: { user, tenant } }) =>
    user === null || !user.is_active || user.is_superuser ? [] : [{ userId: user.id, tenantKey: tenant }],
  );
  const found =
    groups === null || asked.length === 0
      ? []
      : await (groups.groupsOfMany?.(first.db, asked) ??
          Promise.all(asked.map(({ userId, tenantKey }) => groups.groupsOf(first.db, userId, tenantKey))));
  let next = 0;
  return contexts.map(({ caller: { user, tenant, now }, permission }) => {
    const isAsked = user !== null && user.is_active && !user.is_superuser && groups !== null;
    const ofUser = isAsked ? ruleResult('groupsOf', 'group directory', found[next++] ?? []) : [];
    return { user, tenant, now, permission, groups: ofUser };
  });
}

function placeOf({ tenant }: ObjectActions, asker: KnownAsker, subject: string): string {
  return `${tenant === undefined ? '' : (asker.tenant ?? '')} ${subject}`;
}

/** The keys of objects by tenant and subject; of each one more than a list may have at most. */
async function objectsBySubject(
  declaration: ObjectActions,
  db: Db | undefined,
  askers: readonly KnownAsker[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const subjects = [...new Set(askers.flatMap((asker) => subjectsOf(declaration, asker)))];
  if (db === undefined || subjects.length === 0 || !declaration.actions.has(VIEW)) return new Map();
  const sql = new GrantSql(db.dialect, { user: null, tenant: null, now: (askers[0] as KnownAsker).now, groups: [] });
  const tenants = declaration.tenant === undefined ? [''] : [...new Set(askers.map(({ tenant }) => tenant ?? ''))];
  const granted =
    `select g.tenant_key, g.subject, g.object_id, row_number() over (partition by g.tenant_key, g.subject order by g.object_id) as place from grants g ` +
    `where g.object_type = '${declaration.type}' and ${sql.among('g.subject', () => subjects)} and ${sql.among('g.tenant_key', () => tenants)} ` +
    `and g.object_deleted_at is null and ${sql.isLive()} and ${sql.gives(declaration, VIEW)}`;
  const rows = await db.query<{ tenant_key: string; subject: string; object_id: string }>(
    `select tenant_key, subject, object_id from (${granted}) granted where place <= ${limits.liveRows + 1}`,
    sql.values.list,
  );
  const found = new Map<string, string[]>();
  for (const { tenant_key, subject, object_id } of rows) {
    const place = `${tenant_key} ${subject}`;
    const known = found.get(place);
    if (known === undefined) found.set(place, [object_id]);
    else known.push(object_id);
  }
  return found;
}
