import { type AuditEntry, type AuditSink, isMaskedByPlace } from '../../../auth/request/audit-sink.ts';
import { requestChannel } from '../../../auth/request/request-channel.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { randomUUID } from 'node:crypto';
import { actingRequest } from '../../../http/exchange/acting-request.ts';
import { type EntryContent, valuesHash } from '../chain/chain.ts';
import { eraseEntries } from '../chain/erase.ts';
import { masked } from './mask.ts';
import { sealers } from '../chain/sealer.ts';
import { addToInbox } from '../chain/store.ts';
import { IDENTITY_LENGTH_MAX } from '../../../db/values/identity-length.ts';

/** Of what is longer only the beginning is recorded: the change must not fail for it. */
const [ACTION_LENGTH_MAX, SCHEME_LENGTH_MAX, REQUEST_LENGTH_MAX] = [100, 64, 200];

export interface AuditSinkOptions {
  readonly clock: Clock;
  readonly sensitive: () => ReadonlySet<string>;
  /** Told of entries once they are committed; undefined while they are not counted. */
  readonly recorded?: () => ((entries: readonly AuditEntry[]) => void) | undefined;
  /** Where the tables are. */
  readonly databases: readonly string[];
}

/** Writes entries in the transaction of their change. Given a plain handle, the entries are a transaction of their own. */
export function auditSink({ clock, sensitive, recorded, databases }: AuditSinkOptions): AuditSink {
  const record = async (db: Db, entries: readonly AuditEntry[]): Promise<void> => {
    const [first] = entries;
    if (first === undefined) return;
    // A change that cannot be recorded does not happen: the transaction it is part of fails.
    if (!databases.includes(db.using)) {
      const list = JSON.stringify([...databases, db.using]);
      throw new Error(`${first.action}: changes in the database "${db.using}" cannot be recorded. Use audit({ databases: ${list} }).`);
    }
    const names = sensitive();
    const contents = entries.map((entry) => contentOf(entry, clock, names));
    await (db.isTransaction ? addToInbox(db, contents) : db.transaction((tx) => addToInbox(tx, contents), CONFLICT_RETRIES));
    const tell = recorded?.();
    db.afterCommit(() => {
      sealers.find(db)?.wake();
      tell?.(entries);
    });
  };
  const sink: AuditSink = { databases, record, erase: (db, erasure) => eraseEntries(db, sink, erasure) };
  return sink;
}

function contentOf(entry: AuditEntry, clock: Clock, sensitive: ReadonlySet<string>): EntryContent {
  const acting = actingRequest();
  // What has no schema is masked by the names that schemas of the app mark.
  const plain = (value: object | null | undefined) =>
    (value === null || value === undefined ? null : masked(value, isMaskedByPlace(value) ? null : sensitive)) ?? null;
  const content = {
    id: uuidv7(clock),
    at: clock.now(),
    // What is called in a handler without saying who acts is done by the caller of the request.
    ...actorOf(entry.actor ?? acting?.principal ?? null),
    action: cut(entry.action, ACTION_LENGTH_MAX),
    target_type: cut(entry.target_type, ACTION_LENGTH_MAX),
    target_id: cut(entry.target_id),
    before: plain(entry.before),
    after: plain(entry.after),
    metadata: plain(withImpersonator(withChannel(entry.metadata), entry.actor ?? acting?.principal ?? null)),
    request_id: cutOrNull(entry.request_id ?? acting?.requestId, REQUEST_LENGTH_MAX),
    tenant_id: cut(entry.tenant ?? ''),
    salt: randomUUID(),
  };
  return { ...content, values_hash: valuesHash(content) };
}

/** Entries of a tool call say so. A change that was part of a larger one keeps that under `change`. */
function withChannel(metadata: object | undefined): object | undefined {
  const channel = requestChannel.getStore();
  if (channel === undefined) return metadata;
  const { via: change, ...rest } = (metadata ?? {}) as { readonly via?: unknown };
  return { ...rest, ...(change === undefined ? {} : { change }), ...channel };
}

/** The actor is the user; who acts as the user stands beside it. */
function withImpersonator(metadata: object | undefined, actor: AuditEntry['actor']): object | undefined {
  const impersonatedBy = typeof actor === 'object' && actor !== null && 'user' in actor ? actor.impersonatedBy : undefined;
  return impersonatedBy === undefined ? metadata : { ...metadata, impersonated_by: impersonatedBy };
}

type ActorFields = Pick<EntryContent, 'actor_id' | 'actor_name' | 'actor_scheme' | 'credential_id'>;

/** A principal also says how the actor was authenticated and by which key or session; a string names a program, such as a command. */
function actorOf(actor: NonNullable<AuditEntry['actor']> | null): ActorFields {
  const unknown = { actor_id: null, actor_name: null, actor_scheme: null, credential_id: null };
  if (actor === null) return unknown;
  if (typeof actor === 'string') return { ...unknown, actor_name: cut(actor) };
  if (!('user' in actor)) return { ...unknown, actor_id: cut(actor.id), actor_name: cut(actor.username) };
  const { user, scheme, credentialId } = actor;
  return {
    actor_id: cut(user.id),
    actor_name: cut(user.username),
    actor_scheme: cut(scheme, SCHEME_LENGTH_MAX),
    credential_id: cutOrNull(credentialId),
  };
}

function cut(text: string, lengthMax = IDENTITY_LENGTH_MAX): string {
  return text.length <= lengthMax ? text : Array.from(text).slice(0, lengthMax).join('');
}

function cutOrNull(text: string | null | undefined, lengthMax?: number): string | null {
  return text === null || text === undefined ? null : cut(text, lengthMax);
}
