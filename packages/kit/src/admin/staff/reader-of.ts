import type { AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import type { Reader } from '../../auth/request/record-reading.ts';

/** Who reads in the site, for audit entries. */
export function readerOf({ audit, db, principal, requestId }: AdminContext): Reader {
  return { audit, db, actor: principal, requestId };
}

/** What audit entries call the records of a list. */
export function targetTypeOf({ auditedAs, name }: AdminResource): string {
  return auditedAs ?? name;
}
