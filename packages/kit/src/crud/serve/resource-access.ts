import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import type { AnyResource } from '../declare/resource.ts';
import { MountedResource } from '../mount/mounted-resource.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { tagOf } from '../read/etag.ts';
import type { Context } from '../read/list-access.ts';
import { ListQueryReader, type ShapeParameters } from '../read/list-query.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { selectRows } from '../read/read.ts';
import { SelectUnit } from '../read/select.ts';
import type { Shape } from '../read/shape.ts';
import type { Asked, Intent } from '../write/intent.ts';
import type { RowKey } from '../write/row-statements.ts';
import { HttpCrudRequest } from '../mount/http-crud-request.ts';

/** The parameters of a request that names none. */
export const WHOLE: ShapeParameters = Object.freeze({ fields: undefined, expand: [] });
export const NO_CONDITIONS: readonly CompiledWhere[] = Object.freeze([]);

/** The controller of a mounted resource. */
export interface MountedBy {
  readonly controller: object | null;
  /** The tenant that its requests act for, where it is not the app's. */
  readonly tenantOf?: ((context: Context) => string | null | Promise<string | null>) | undefined;
}

const NO_CONTROLLER: MountedBy = { controller: null };

interface SingleShape {
  readonly shape: Shape;
  readonly isFreeForm: boolean;
}

/** A mounted resource as requests reach it: what the address, the permission and the parameters say of rows. */
export class ResourceAccess extends MountedResource {
  #mountedBy: MountedBy;

  constructor(resource: AnyResource, options: AnyCrudOptions, mountedBy: MountedBy = NO_CONTROLLER) {
    super(resource, options);
    this.#mountedBy = mountedBy;
  }

  get controller(): object | null {
    return this.#mountedBy.controller;
  }

  /** The controller says which tenant its requests act for. */
  get hasOwnTenant(): boolean {
    return this.#mountedBy.tenantOf !== undefined;
  }

  /** Its controller is below the records of another, whose class and tenant are those of its requests. */
  mountBelow({ controller, tenantOf }: MountedBy): void {
    this.#mountedBy = { controller, tenantOf: this.#mountedBy.tenantOf ?? tenantOf };
  }

  async request(context: Context, action: string, tx?: Db): Promise<CrudRequest> {
    const exchange = exchangeOf(context.request);
    const { tenantOf } = this.#mountedBy;
    const tenant = tenantOf === undefined ? await exchange.tenant : await tenantOf(context);
    return new HttpCrudRequest(exchange, tenant, action, this, tx);
  }

  /** What of one row, or of as many as a bulk operation has, the caller gets. */
  async singleShape(context: Context, request: CrudRequest, rows = 1): Promise<SingleShape> {
    const view = await this.view(request);
    const given = context.query as QueryValues;
    const parameters = isEmpty(given) ? WHOLE : new ListQueryReader(this.list, request, view).readShape(given);
    return { shape: this.shape(view, parameters, rows), isFreeForm: parameters !== WHOLE };
  }

  /** A permission about objects, as a condition: what `authorize` decides for one row is decided for a list in SQL. */
  async permittedRows(context: Context, request: CrudRequest): Promise<readonly CompiledWhere[]> {
    const exchange = exchangeOf(context.request);
    return exchange.verdict === 'unknown' ? this.#rowsOfPermission(exchange, request) : NO_CONDITIONS;
  }

  async #rowsOfPermission(exchange: Exchange, request: CrudRequest): Promise<readonly CompiledWhere[]> {
    const rows = await exchange.route?.permission.rows(exchange);
    if (rows === undefined) return NO_CONDITIONS;
    exchange.verdict = true;
    return [await this.policy.rows.compiledRule(request, rows as Where | boolean)];
  }

  /** Rows of the parent in the address. A parent the caller does not see is a 404 for the whole request. */
  async parentRows(context: Context, request: CrudRequest, db: Db, mustExist: boolean): Promise<readonly CompiledWhere[]> {
    const { parent } = this;
    if (parent === undefined) return NO_CONDITIONS;
    const { edge } = parent;
    const value = this.parentValue(context);
    if ((await edge.target.rows.ofEdge(request)).where === false) throw edge.target.missing();
    if (!mustExist) return [this.policy.rows.compile(request, { [edge.column]: value, [edge.name]: { is: {} } })];
    const found = await selectRows(db, request, {
      unit: new SelectUnit(keyShape(edge.target)),
      where: [edge.target.rows.compile(request, { [edge.target.key.name]: value } as Where)],
      isFreeForm: false,
    });
    if (found.length === 0) throw edge.target.missing();
    return [this.policy.rows.compile(request, { [edge.column]: value } as Where)];
  }

  parentValue(context: Context): unknown {
    const { edge, param } = this.parent as { readonly edge: Edge; readonly param: string };
    const settings = edge.target.settingsOf(edge.target.key.name);
    // As it was sent: a route of the controller's own may declare other parameters.
    const read = readKey(settings, (context.request.params as Record<string, string>)[param] ?? '');
    if (read.fault !== undefined) throw edge.target.missing();
    return read.value;
  }

  /** The key in the address. */
  key(context: Context): RowKey {
    return this.rowKey((context.params as { id: string }).id);
  }

  /** What the address, the permission and the representation say of a write. */
  asked(context: Context, shape: Shape): Pick<Intent, 'fixed'> & { readonly asked: Asked } {
    const { ownsTransaction } = exchangeOf(context.request);
    const { fixed, asked } = this.fixedIntent(context);
    const etagOf = this.policy.options.version === undefined ? undefined : (row: Item) => this.#etagOfRow(shape, row);
    return { fixed, asked: { ...asked, etagOf, ownsTransaction } };
  }

  /** What the address and the permission say of every row that is written. */
  fixedIntent(context: Context): Pick<Intent, 'fixed'> & { readonly asked: Pick<Asked, 'authorize'> } {
    const { parent } = this;
    const isUndecided = exchangeOf(context.request).verdict === 'unknown';
    return {
      fixed: parent === undefined ? undefined : { [parent.edge.column]: this.parentValue(context) },
      asked: { authorize: isUndecided ? (row: Item) => context.authorize(row) : undefined },
    };
  }

  /**
   * Admits a request that may end without an object: a description, an import without rows, a partial bulk write whose items all failed. Every object
   * that it reached was authorized by itself.
   */
  admitWithoutObject(context: Context): void {
    const exchange = exchangeOf(context.request);
    if (exchange.verdict === 'unknown') exchange.verdict = true;
  }

  /** The tag a reader of this shape would get for the row; the plain version where the body would be needed. */
  #etagOfRow(shape: Shape, row: Item): string {
    const version = row[this.policy.options.version as string];
    const source = tagOf(this.policy, shape, version);
    return source.kind === 'version' ? source.tag : `"${String(version)}"`;
  }
}

function isEmpty(query: object): boolean {
  for (const _ in query) return false;
  return true;
}

function keyShape(policy: Policy): Shape {
  return { policy, key: '~key', columns: [], computed: [], places: [], edges: [], isWhole: false };
}
