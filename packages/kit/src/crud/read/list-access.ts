import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { ListDeclaration, ShapeParameters } from './list-query.ts';
import type { Policy } from '../policy/policy.ts';
import type { View } from '../policy/view.ts';
import type { Shape } from './shape.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a handler of whatever input
export type Context = HandlerContext<any, any, any, any, any>;

/** How operations that read many rows (list, export, stats) come to what the caller may see of them. */
export interface ListAccess {
  readonly policy: Policy;
  readonly list: ListDeclaration;
  /** The policies that declared paths lead to, and the own one. */
  readonly involved: readonly Policy[];
  readonly output: ReadonlySet<string> | undefined;
  auditOf(what: 'reads' | 'exports'): AuditSink | null;
  request(context: Context, action: string): Promise<CrudRequest>;
  view(request: CrudRequest): Promise<View>;
  shape(view: View, parameters: ShapeParameters, pageSize: number): Shape;
  /** A permission about objects, as a condition. */
  permittedRows(context: Context, request: CrudRequest): Promise<readonly CompiledWhere[]>;
  /** Rows of the parent in the address. */
  parentRows(context: Context, request: CrudRequest, db: Db, mustExist: boolean): Promise<readonly CompiledWhere[]>;
}
