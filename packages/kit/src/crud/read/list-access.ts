import type { Db } from '../../db/db.ts';
import type { CompiledWhere } from '../../db/where/compile-where.ts';
import type { HandlerContext } from '../../http/handler-context.ts';
import type { CrudRequest, Visibility } from '../policy/crud-request.ts';
import type { ListDeclaration, ShapeParameters } from './list-query.ts';
import type { Policy } from '../policy/policy.ts';
import type { Shape } from './shape.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a handler of whatever input
export type Context = HandlerContext<any, any, any, any, any>;

/** How operations that read many rows (list, export, stats) come to what the caller may see of them. */
export interface ListAccess {
  readonly policy: Policy;
  readonly list: ListDeclaration;
  readonly output: ReadonlySet<string> | undefined;
  request(context: Context, action: string): CrudRequest | Promise<CrudRequest>;
  visibilityOf(request: CrudRequest): ((policy: Policy) => Visibility) | Promise<(policy: Policy) => Visibility>;
  shape(visibilityOf: (policy: Policy) => Visibility, parameters: ShapeParameters, pageSize: number): Shape;
  /** A permission about objects, as a condition. */
  permittedRows(context: Context, request: CrudRequest): readonly CompiledWhere[] | Promise<readonly CompiledWhere[]>;
  /** Rows of the parent in the address. */
  parentRows(
    context: Context,
    request: CrudRequest,
    db: Db,
    mustExist: boolean,
  ): readonly CompiledWhere[] | Promise<readonly CompiledWhere[]>;
}
