import { recordRead } from '../../auth/request/record-reading.ts';
import { isObserved } from '../../db/engine/query-observer.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import type { ListPage } from '../options/list-page.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { tagOf } from '../read/etag.ts';
import { readList, unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import type { ListPlan } from '../read/list-plan.ts';
import { ListQueryReader } from '../read/list-query.ts';
import { readFresh } from '../read/read-fresh.ts';
import { readOne } from '../read/read.ts';
import type { SelectUnit } from '../read/select.ts';
import type { Shape } from '../read/shape.ts';
import { type PossibleTransition, possibleTransitions } from '../write/possible-transitions.ts';
import { tenantOfRow } from '../write/record-changes.ts';
import { type Answering, BODY_TAG, pageHeaders } from './answering.ts';
import { describeResource } from './meta.ts';
import { verdictOn } from './verdict-on.ts';
import type { Programs } from './programs.ts';
import type { ResourceAccess } from './resource-access.ts';

/** Combinations of more filters than this get no statement name of their own on the server. */
const FILTERS_NAMED_MAX = 4;

/** The operations that read: list, QUERY, retrieve, transitions and meta. */
export class Reading {
  readonly #access: ResourceAccess;
  readonly #answering: Answering;
  readonly #programs: Programs;

  constructor(access: ResourceAccess, answering: Answering, programs: Programs) {
    this.#access = access;
    this.#answering = answering;
    this.#programs = programs;
  }

  /** What of the rows this caller sees, for idempotency: a response is sent again only to who would get the same. */
  readonly audience = async (context: Context): Promise<string> => {
    const access = this.#access;
    return (await access.view(await access.request(context, 'audience'))).mask;
  };

  /** Exactly which rows and fields this caller reads, for caches: who lost a right has another audience at once. */
  readonly readAudience = async (context: Context): Promise<string> => {
    const access = this.#access;
    const { metadata } = exchangeOf(context.request).route as CompiledRoute;
    const { operation } = metadata['crud'] as { readonly operation: string };
    const request = await access.request(context, operation === 'query' ? 'list' : operation);
    const parts: unknown[] = [(await access.view(request)).mask];
    for (const policy of access.involved) {
      const { compiled } = await (policy === access.policy ? policy.rows.visible(request) : policy.rows.ofEdge(request));
      parts.push(compiled.shape, compiled.values(policy.database(request).dialect));
    }
    return JSON.stringify(parts, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  };

  readonly list = async (context: Context): Promise<ListPage> => {
    const access = this.#access;
    const request = await access.request(context, 'list');
    const view = await access.view(request);
    const given = context.query as QueryValues;
    const offersDeleted = given['deleted'] !== undefined && (await this.#mayRestore(context));
    const list = await new ListQueryReader(access.list, request, view, offersDeleted).readGet(given);
    // How many rows a search finds depends on its words: one plan for all of them would be wrong for most.
    const isFreeForm =
      list.fields !== undefined || list.expand.length > 0 || list.where.length > FILTERS_NAMED_MAX || given['search'] !== undefined;
    return this.#page(context, request, { list, shape: access.shape(view, list, list.limit), isFreeForm }, 'list');
  };

  readonly query = (context: Context): Promise<ListPage> =>
    this.#query(context).catch((error: unknown) => {
      throw inBody(error, (context.body ?? {}) as object, context.query as QueryValues);
    });

  async #query(context: Context): Promise<ListPage> {
    const access = this.#access;
    const request = await access.request(context, 'list');
    const view = await access.view(request);
    const list = await new ListQueryReader(access.list, request, view).readQuery(
      context.query as QueryValues,
      (context.body ?? {}) as Readonly<Record<string, unknown>>,
    );
    return this.#page(context, request, { list, shape: access.shape(view, list, list.limit), isFreeForm: true }, 'query');
  }

  async #page(context: Context, request: CrudRequest, plan: ListPlan, operation: 'list' | 'query'): Promise<ListPage> {
    const access = this.#access;
    const db = access.policy.database(request);
    const permitted = await access.permittedRows(context, request);
    const ofParent = await access.parentRows(context, request, db, true);
    this.#notePlan(context, plan.shape);
    const fixed = [...permitted, ...ofParent];
    const read = await readFresh(access, context, request, fixed, (fresh) =>
      readList(fresh, request, plan, {
        policy: access.policy,
        options: access.list.page,
        cursors: () => access.cursors(),
        operation: this.#listName(context, operation),
        queryString: queryStringOf(exchangeOf(context.request).url),
        offsetMax: access.limits.offset,
        fixed,
      }),
    );
    const headers = access.options.live === true ? { ...pageHeaders(read), vary: 'Accept' } : pageHeaders(read);
    this.#answering.answerWith(context, read.page, BODY_TAG, headers);
    return read.page;
  }

  /**
   * Tells lists apart that differ in nothing a caller asks for: those of two controllers of one resource, and those below two parents. QUERY
   * and its alias are one list.
   */
  #listName(context: Context, operation: 'list' | 'query'): string {
    const { mount, controller } = exchangeOf(context.request).route as CompiledRoute;
    const { parent } = this.#access;
    const below = parent === undefined ? '' : ` of ${String(parent.edge.target.key.encode(this.#access.parentValue(context)))}`;
    return `${mount} ${controller}.${operation}${below}`;
  }

  /** Who may restore rows may see which were deleted. A permission about rows counts where it holds for every row. */
  async #mayRestore(context: Context): Promise<boolean> {
    if (!this.#access.list.hasDeleted) return false;
    const own = exchangeOf(context.request).route as CompiledRoute;
    const restore = this.#access.appRoutes.find(
      ({ field, controller, path }) => field === 'restore' && controller === own.controller && path.startsWith(own.path),
    );
    return restore !== undefined && (await verdictOn(restore, exchangeOf(context.request))) === true;
  }

  /** For `X-Query-Plan`, where it is requested. */
  #notePlan(context: Context, shape: Shape): void {
    if (isObserved()) exchangeOf(context.request).noteQueryPlan(unitFor(shape, []).plan);
  }

  readonly retrieve = async (context: Context): Promise<Item> => {
    const access = this.#access;
    const { policy } = access;
    const request = await access.request(context, 'retrieve');
    const { shape, isFreeForm } = await access.singleShape(context, request);
    const db = policy.database(request);
    const { column, value } = access.key(context);
    const key = policy.rows.compile(request, { [column.name]: value } as Where);
    const where = [key, ...(await access.parentRows(context, request, db, false))];
    const needsRow = exchangeOf(context.request).verdict === 'unknown';
    const version = policy.options.version as string | undefined;
    const audit = access.auditOf('reads');
    const tenant = policy.tenant?.column;
    const recorded = audit === null ? [] : [policy.key.name, ...(tenant === undefined ? [] : [tenant])];
    const named = [...(version === undefined ? [] : [version]), ...recorded];
    const unit = unitFor(shape, needsRow ? policy.codeColumns : named);
    this.#notePlan(context, shape);
    const { row, item } = await readOne(db, request, unit, where, isFreeForm, needsRow);
    if (needsRow) await context.authorize(wholeRow(unit, row));
    if (audit !== null) {
      const { principal: actor, requestId } = request;
      const ofTenant = tenant === undefined ? null : tenantOfRow(policy, { [tenant]: unit.extra(row, tenant) });
      await recordRead({ audit, db, actor, requestId, tenant: ofTenant }, policy.name, String(unit.extra(row, policy.key.name)));
      // A cache would answer the next read without an entry.
      context.reply.header('cache-control', 'no-store');
    }
    this.#answering.answerWith(context, item, tagOf(policy, shape, version === undefined ? undefined : unit.extra(row, version)));
    return item;
  };

  readonly describe = async (context: Context): Promise<Item> => {
    const meta = await describeResource(this.#access, this.#routes, context);
    this.#access.admitWithoutObject(context);
    this.#answering.answerWith(context, meta, BODY_TAG);
    return meta;
  };

  /** The compiled routes of this controller: the generic ones, wrapped or not. */
  get #routes(): readonly CompiledRoute[] {
    return this.#access.appRoutes.filter(({ route }) => route.finish === this.#answering.finish);
  }

  /** What this caller may do to this row now. */
  readonly transitions = async (context: Context): Promise<{ items: Item[] }> => {
    const request = await this.#access.request(context, 'transitions');
    const row = await this.#programs.find(context, (context.params as { id: string }).id);
    const items: Item[] = [];
    for (const { name, to, route } of await this.offeredTransitions(context, request, row))
      items.push({ name, to, ...(route.body === undefined ? {} : { input: route.body.json }) });
    return { items };
  };

  /** What this caller may do to this row now, of what this controller offers. */
  async offeredTransitions(context: Context, request: CrudRequest, row: Item): Promise<OfferedTransition[]> {
    const offered: OfferedTransition[] = [];
    for (const { name, to } of await possibleTransitions(this.#access.policy, request, row)) {
      const route = this.#siblingRoute(context, name);
      if (route !== undefined && (await verdictOn(route, exchangeOf(context.request), row)) === true) offered.push({ name, to, route });
    }
    return offered;
  }

  /** The mounted route of another operation of this controller at this address; undefined when the controller does not offer it. */
  #siblingRoute(context: Context, operation: string): CompiledRoute | undefined {
    const own = exchangeOf(context.request).route as CompiledRoute;
    const base = own.path.slice(0, own.path.lastIndexOf('/:id'));
    return this.#access.appRoutes.find(
      ({ field, controller, path }) => field === operation && controller === own.controller && path.startsWith(`${base}/:id`),
    );
  }
}

type OfferedTransition = PossibleTransition & { readonly route: CompiledRoute };

function wholeRow(unit: SelectUnit, row: Item): Item {
  return Object.fromEntries(unit.shape.policy.codeColumns.map((name) => [name, unit.extra(row, name)]));
}

/** Faults of members that QUERY has in its body and GET in the query string are at their place in the body. */
function inBody(error: unknown, body: object, query: QueryValues): unknown {
  if (!isKitError(error, 'validation_error') || error.errors === undefined) return error;
  const isInBody = (name: unknown) => typeof name === 'string' && Object.hasOwn(body, name) && !Object.hasOwn(query, name);
  return coreErrors.validation_error({
    errors: error.errors.map((fault) => {
      const [place, name, ...rest] = fault.location;
      return place === 'query' && isInBody(name) ? { ...fault, location: ['body', name as string, ...rest] } : fault;
    }),
  });
}

/** Characters that no reference has and some clients send: `>` would end one in `Link`. */
const NOT_IN_REFERENCES = /[<>"\\^`{|}]/g;

/** The query string of an address as references to other pages have it: the same parameters, fit for `Link`. */
function queryStringOf(url: string): string {
  const mark = url.indexOf('?');
  if (mark === -1) return '';
  const end = url.indexOf('#', mark);
  return url.slice(mark + 1, end === -1 ? undefined : end).replace(NOT_IN_REFERENCES, encodeURIComponent);
}
