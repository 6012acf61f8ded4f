import type { Principal, User } from '../people/principal.ts';
import type { AuditSink } from './audit-sink.ts';
import type { Db } from '../../db/engine/db.ts';

/** Who reads, and where entries go. */
export interface Reader {
  readonly audit: AuditSink | null;
  readonly db: Db;
  readonly actor: Principal | User | null;
  readonly requestId: string | null;
  /** Whose rows are read; null: of no tenant, or of several. */
  readonly tenant?: string | null;
}

/** `order.read`: one record, whole. */
export function recordRead(reader: Reader, targetType: string, id: string): Promise<void> {
  return record(reader, { action: `${targetType}.read`, target_type: targetType, target_id: id });
}

/** `order.exported`: rows as a file. `list`: what was exported. */
export function recordExport(reader: Reader, targetType: string, list: string, metadata: object): Promise<void> {
  return record(reader, { action: `${targetType}.exported`, target_type: targetType, target_id: list, metadata });
}

async function record(
  { audit, db, actor, requestId, tenant = null }: Reader,
  entry: { readonly action: string; readonly target_type: string; readonly target_id: string; readonly metadata?: object },
): Promise<void> {
  await audit?.record(db, [{ actor, request_id: requestId, tenant, ...entry }]);
}
