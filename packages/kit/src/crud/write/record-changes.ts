import type { EventEntry, EventPublisher } from '../../app/declare/registry.ts';
import type { AuditEntry, AuditSink } from '../../auth/request/audit-sink.ts';
import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { Db } from '../../db/engine/db.ts';
import { announcedRow, auditedRow } from './change.ts';
import type { Policy } from '../policy/policy.ts';
import type { Change, ChangeEvent } from '../declare/resource.ts';
import { PAST_OPERATIONS } from '../declare/event-types.ts';
import type { Item } from '../declare/item.ts';

/** Where changes are recorded and announced, if anywhere. */
export interface Recorders {
  readonly audit: AuditSink | null;
  readonly events: EventPublisher | null;
}

/** A changed row that is not recorded yet. */
export interface PendingChange {
  readonly policy: Policy;
  readonly change: Change;
}

/** Whether the changes of a resource are recorded or announced. */
export function isRecorded({ options: { audit, events, writes } }: Policy, recorders: Recorders): boolean {
  if (writes === 'verbs') return false;
  return (audit !== false && recorders.audit !== null) || (events !== undefined && events !== false && recorders.events !== null);
}

/** Audit entries and events of every change of a request: one statement for each, however many rows changed. */
export async function recordChanges(tx: Db, { audit, events }: Recorders, changes: readonly PendingChange[]): Promise<void> {
  const entries = changes.filter(({ policy }) => policy.options.audit !== false).map(auditEntry);
  if (audit !== null && entries.length > 0) await audit.record(tx, entries);
  const announced = events === null ? [] : changes.flatMap((change) => eventEntry(change) ?? []);
  if (events !== null && announced.length > 0) await events.publish(tx, announced);
}

const PAST: Readonly<Record<string, string>> = PAST_OPERATIONS;

/** `order.created`, `order.pay`. */
function actionOf({ name }: Policy, { operation }: Change): string {
  return `${name}.${PAST[operation] ?? operation.slice(operation.indexOf(':') + 1)}`;
}

function auditEntry({ policy, change }: PendingChange): AuditEntry {
  const row = (change.after ?? change.before) as Item;
  return {
    actor: change.principal ?? change.user,
    action: actionOf(policy, change),
    target_type: policy.name,
    target_id: String(row[policy.key.name]),
    before: auditedRow(policy, change.before),
    after: auditedRow(policy, change.after),
    request_id: change.requestId,
    tenant: tenantOfRow(policy, row),
    ...(change.via === 'single' ? {} : { metadata: { via: change.via } }),
  };
}

/** Null where rows have no tenant, and for a row of none. */
export function tenantOfRow({ tenant }: Policy, row: Item): string | null {
  return tenant === undefined || row[tenant.column] === tenant.none ? null : String(row[tenant.column]);
}

function eventEntry({ policy, change }: PendingChange): EventEntry | null {
  const { events } = policy.options;
  if (events === undefined || events === false) return null;
  const event = typeof events === 'function' ? eventOf(policy, events, change) : defaultEvent(policy, change);
  if (event === null) return null;
  const row = (change.after ?? change.before) as Item;
  const { type, data, audience } = event;
  return { type, data, ...audience, orderingKey: `${policy.name}:${String(row[policy.key.name])}` };
}

function eventOf({ model }: Policy, events: (change: Change) => unknown, change: Change): ChangeEvent | null {
  return ruleResult('events', `resource(${model.name})`, events(change));
}

/** Null for a row of nobody. */
function defaultEvent(policy: Policy, change: Change): ChangeEvent | null {
  const row = (change.after ?? change.before) as Item;
  const { owner } = policy;
  const announced = announcedRow(policy, row);
  const tenantKey = tenantOfRow(policy, row);
  const audience: { owner?: string; tenantKey?: string } = tenantKey === null ? {} : { tenantKey };
  const isForOwner = policy.options.events !== 'tenant';
  if (isForOwner && owner !== undefined && row[owner.column] !== owner.none) audience.owner = String(row[owner.column]);
  if (audience.owner === undefined && audience.tenantKey === undefined) return null;
  return {
    type: actionOf(policy, change),
    data: { id: announced[policy.key.name], changed: change.changed.filter((name) => Object.hasOwn(announced, name)), object: announced },
    audience,
  };
}
