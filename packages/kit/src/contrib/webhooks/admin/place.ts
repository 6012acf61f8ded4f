import { adminCount } from '../../../app/admin/each.ts';
import type { AdminContext } from '../../../app/admin/declaration.ts';
import type { AdminLink, AdminState, AdminValue } from '../../../app/admin/shapes.ts';
import type { Hindrance } from '../../../auth/rights/standing.ts';
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import type { Db } from '../../../db/engine/db.ts';
import { databaseNamed } from '../../../db/open/named-database.ts';
import type { ShownEndpoint } from './store.ts';
import type { FailureReason } from '../delivery/delivery-outcome.ts';
import { ownerNames } from '../endpoints/owners.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';
import { webhooksOf } from '../webhooks.ts';

/** Which database a set of lists is about, and how its resources are told from those of another. */
export interface AdminPlace {
  readonly database: string;
  readonly suffix: string;
  readonly label: string;
  readonly users: () => UserDirectory | null;
  /** Names of the declared types of events. */
  readonly eventTypes: readonly string[];
}

export function databaseOf({ database }: AdminPlace, { databases }: Pick<AdminContext, 'databases'>): Db {
  return databaseNamed(databases, database, 'webhooks({ databases })');
}

export function link({ suffix }: AdminPlace, resource: 'endpoints' | 'deliveries' | 'events', id: string, text: string): AdminLink {
  return { resource: `${resource}${suffix}`, id, text };
}

/** Links to the owners of what is listed, by owner id. */
export async function ownerLinks(place: AdminPlace, context: AdminContext, ids: readonly string[]): Promise<(id: string) => AdminValue> {
  const names = await ownerNames(context.db, place.users(), ids);
  return (id) => {
    const name = names.get(id);
    return id === '' ? null : name === undefined ? id : (context.linkTo('user', id, name) ?? name);
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

/** The id of the owner that was typed: a user name, an address, or an id. */
export async function ownerIdOf(place: AdminPlace, context: AdminContext, typed: string): Promise<string | null> {
  const users = place.users();
  if (users === null) return typed;
  return ((await users.findByLogin(context.db, typed)) ?? (await users.findById(context.db, typed)))?.id ?? null;
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
  unknown_user: UNKNOWN,
  not_known: UNKNOWN,
};

export function endpointState(endpoint: ShownEndpoint, hindrances: ReadonlyMap<string, Hindrance>): AdminState {
  if (!endpoint.is_active) {
    const why = REASONS[endpoint.disabled_reason ?? ''] ?? '';
    return { value: 'disabled', tone: 'bad', hint: `${why} Nothing is sent until it is enabled.`.trim() };
  }
  const hindrance = hindrances.get(endpoint.id);
  if (hindrance !== undefined) return { ...OWNER_STATES[hindrance], tone: 'warning' };
  if (endpoint.failing_since === null) return { value: 'active', tone: 'good' };
  const since = endpoint.failing_since.toISOString();
  const failures = adminCount(endpoint.consecutive_failures, ['failure', 'failures']);
  return { value: 'failing', tone: 'warning', hint: `${failures} in a row, the first at ${since}.` };
}

/** What failed, in words. */
export const FAILURES: Readonly<Record<FailureReason, string>> = {
  http_status: 'HTTP status',
  timeout: 'Timeout',
  connection: 'Connection',
  tls: 'TLS',
  blocked_address: 'Blocked address',
  audience_changed: 'Audience changed',
  endpoint_disabled: 'Endpoint disabled',
  secret_unavailable: 'Secret unavailable',
  payload: 'Payload',
};

/** The state as an operator sees it; the filters of the list use the same words. */
export function deliveryState(delivery: WebhookDelivery, isHeld: boolean): AdminState {
  const { status, attempts, failure_reason, last_error, ordering_key, next_attempt_at } = delivery;
  if (status === 'succeeded') return { value: 'succeeded', tone: 'good' };
  if (status === 'failed')
    return {
      value: 'failed',
      tone: 'bad',
      hint: last_error ?? reasonOf(failure_reason) ?? 'It is not retried automatically.',
    };
  if (next_attempt_at === null) return { value: 'no audience', tone: 'warning', hint: 'Its event has no audience. Assign one to send it.' };
  if (isHeld) return { value: 'held', tone: 'warning', hint: `Waits for an earlier delivery with the ordering key ${ordering_key ?? ''}.` };
  if (attempts === 0) return { value: 'pending', tone: 'info' };
  return {
    value: 'retrying',
    tone: 'warning',
    hint: `${adminCount(attempts, ['attempt', 'attempts'])} failed: ${last_error ?? reasonOf(failure_reason) ?? 'no reason was recorded.'}`,
  };
}

export function reasonOf(reason: FailureReason | null): string | null {
  return reason === null ? null : FAILURES[reason];
}

/** Host and path: a query may hold a token of the receiver. */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : `${parsed.host}${parsed.pathname}${parsed.search === '' ? '' : '?…'}`;
}
