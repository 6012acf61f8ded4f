import { adminCount } from '../../../app/admin/each.ts';
import type { AdminContext } from '../../../app/admin/declaration.ts';
import type { AdminLink, AdminState, AdminValue } from '../../../app/admin/shapes.ts';
import { userLink } from '../../../app/admin/user-link.ts';
import type { Hindrance } from '../../../auth/rights/standing.ts';
import type { Db } from '../../../db/engine/db.ts';
import { databaseNamed } from '../../../db/open/named-database.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { ScreenFilter } from '../../../screens/screen-words.ts';
import type { ShownEndpoint } from './store.ts';
import { webhooksOf } from '../webhooks.ts';

/** Which database a set of lists is about, and how its resources are told from those of another. */
export interface AdminPlace {
  readonly database: string;
  readonly suffix: string;
  readonly label: string;
  /** Names of the declared types of events. */
  readonly eventTypes: readonly string[];
}

export function databaseOf({ database }: AdminPlace, { databases }: Pick<AdminContext, 'databases'>): Db {
  return databaseNamed(databases, database, 'webhooks({ databases })');
}

export function link({ suffix }: AdminPlace, resource: 'endpoints' | 'deliveries' | 'events', id: string, text: string): AdminLink {
  return { resource: `${resource}${suffix}`, id, text };
}

/** Names of the owners of what is listed, by owner id. */
export function ownerNames(db: Db, owned: readonly { readonly owner_id: string }[]): Promise<ReadonlyMap<string, string>> {
  return webhooksOf(db).owners.names(
    db,
    owned.flatMap(({ owner_id: id }) => (id === '' ? [] : [id])),
  );
}

/** An owner as a list shows it; null: nobody's. */
export function ownerCell(
  context: AdminContext,
  { owner_id: id, owner: name }: { readonly owner_id: string; readonly owner?: unknown },
): AdminValue {
  return id === '' ? null : userLink(context, id, name as string | undefined);
}

/** The filter by owner, whom staff call by name, by address or by id. */
export function ownerFilter(place: AdminPlace, isIndexed: boolean): ScreenFilter {
  return {
    name: 'owner',
    column: 'owner_id',
    label: 'Owner',
    kind: 'reference',
    of: 'user',
    isIndexed,
    async where(typed, context) {
      const db = databaseOf(place, context);
      return { owner_id: (await webhooksOf(db).owners.find(db, typed)) ?? typed } as Where;
    },
  };
}

/** By endpoint: why its owner may not receive anything; where that cannot be found out, it is not known. */
export async function ownerHindrances(
  place: AdminPlace,
  context: AdminContext,
  endpoints: readonly ShownEndpoint[],
): Promise<ReadonlyMap<string, Hindrance>> {
  const found = await webhooksOf(databaseOf(place, context)).findHindrances(context.db, endpoints);
  return new Map(
    endpoints.flatMap(({ id }, index) => {
      const each = found[index];
      const hindrance = each?.status === 'fulfilled' ? each.value : 'not_known';
      return hindrance === null ? [] : [[id, hindrance] as const];
    }),
  );
}

const REASONS: Readonly<Record<string, string>> = {
  manual: 'Disabled by hand.',
  gone: 'The receiver returned 410 Gone.',
  continuous_failure: 'Every attempt failed for too long.',
};

const UNKNOWN = { value: 'owner unknown', hint: 'Nothing is sent: its owner is not known.' };

const OWNER_STATES: Readonly<Record<Hindrance, { readonly value: string; readonly hint: string }>> = {
  deleted: { value: 'owner deleted', hint: 'Nothing is sent: its owner was deleted.' },
  inactive: { value: 'owner inactive', hint: 'Nothing is sent until its owner is activated.' },
  not_a_member: { value: 'owner left', hint: 'Nothing is sent until its owner is a member of the tenant again.' },
  suspended: { value: 'tenant suspended', hint: 'Deliveries wait until its tenant is resumed.' },
  unknown_user: UNKNOWN,
  not_known: UNKNOWN,
};

export function endpointState(endpoint: ShownEndpoint, hindrance: Hindrance | undefined): AdminState {
  if (!endpoint.is_active) {
    const why = REASONS[endpoint.disabled_reason ?? ''] ?? '';
    return { value: 'disabled', tone: 'bad', hint: `${why} Nothing is sent until it is enabled.`.trim() };
  }
  if (hindrance !== undefined) return { ...OWNER_STATES[hindrance], tone: 'warning' };
  if (endpoint.failing_since === null) return { value: 'active', tone: 'good' };
  const since = new Date(endpoint.failing_since).toISOString();
  const failures = adminCount(endpoint.consecutive_failures, ['failure', 'failures']);
  return { value: 'failing', tone: 'warning', hint: `${failures} in a row, the first at ${since}.` };
}

/** Host and path: a query may hold a token of the receiver. */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : `${parsed.host}${parsed.pathname}${parsed.search === '' ? '' : '?…'}`;
}
