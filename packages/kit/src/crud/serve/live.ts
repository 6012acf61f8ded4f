import { AsyncResource } from 'node:async_hooks';
import { inTime } from '../../auth/rights/in-time.ts';
import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { KnownRows } from '../../db/sql/where/decided-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { ServerSentEvent } from '../../http/declare/server-sent-event.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { changeReaderOf } from '../live/change-reader.ts';
import { knownPeople } from '../live/known-people.ts';
import { asText, type FollowedList, followedFields, isDecidable, keysOnly, listNow, notLive, unitOf } from '../live/list-now.ts';
import { liveEvents, newsOf, type Resumed } from '../live/live-events.ts';
import type { LiveList, LivePlace, LiveSource } from '../live/live-stream.ts';
import { isKnown } from '../live/log-position.ts';
import { later, type Moment, requestAt } from '../live/moment.ts';
import { SharedAccess } from '../live/shared-access.ts';
import { isSteady } from '../live/steady-list.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { View, ViewComputed } from '../policy/view.ts';
import { conditions } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { type ListRequest, ListQueryReader } from '../read/list-query.ts';
import type { ResourceAccess } from './resource-access.ts';

/** Positions are kept by clients this long; the log keeps changes a little longer. */
const WINDOW_MS = 24 * 3_600_000;

/** The list as a stream of its changes. */
export class Live {
  readonly #access: ResourceAccess;

  constructor(access: ResourceAccess) {
    this.#access = access;
  }

  readonly list = (context: Context): AsyncIterable<ServerSentEvent> =>
    this.#events(context, (reader) => reader.readLive(context.query as QueryValues));

  readonly query = (context: Context): AsyncIterable<ServerSentEvent> =>
    this.#events(context, (reader) =>
      reader.readQuery(context.query as QueryValues, (context.body ?? {}) as Readonly<Record<string, unknown>>),
    );

  /** Of the list that a GET reads, for those that read it again themselves. */
  readonly newsOfList = (context: Context): AsyncIterable<void> =>
    this.#news(context, (reader) => reader.readLive(context.query as QueryValues));

  /** Of the record at an address. */
  readonly newsOfRecord = (context: Context): AsyncIterable<void> => {
    const { column, value } = this.#access.key(context);
    const only = { [column.name]: value } as Where;
    return this.#news(context, async (reader) => ({ ...(await reader.readLive({})), where: [only] }));
  };

  #news(context: Context, read: ReadQuery): AsyncIterable<void> {
    const { app } = this.#access;
    return newsOf(app.db, changeReaderOf(app), new RequestedNews(this.#access, context, read));
  }

  #events(context: Context, read: ReadQuery): AsyncIterable<ServerSentEvent> {
    const { app } = this.#access;
    const source = new RequestedList(this.#access, context, read);
    const { 'last-event-id': last } = exchangeOf(context.request).headers;
    const resumed = typeof last === 'string' && last !== '' ? () => source.resumed(app.db, last) : undefined;
    return liveEvents(app.db, changeReaderOf(app), source, resumed);
  }
}

type ReadQuery = (reader: ListQueryReader) => Promise<ListRequest>;

/** The list that a request asks for. Its query is read once; the rights of its caller are asked each time. */
class RequestedList implements LiveSource {
  readonly #access: ResourceAccess;
  readonly #context: Context;
  readonly #exchange: Exchange;
  readonly #readQuery: ReadQuery;
  /** Rules may read what middleware put around the request: the reader, which asks them later, is not in it. */
  readonly #inRequest = new AsyncResource('LiveList');
  #query:
    | { readonly view: View; readonly tenant: string | null; readonly known: string; readonly list: ListRequest & FollowedList }
    | undefined;

  constructor(access: ResourceAccess, context: Context, readQuery: ReadQuery) {
    this.#access = access;
    this.#context = context;
    this.#exchange = exchangeOf(context.request);
    this.#readQuery = readQuery;
    const { permission } = this.#exchange.route as CompiledRoute;
    this.isSteady = !access.hasOwnTenant && isSteady(access, permission);
  }

  get policy(): Policy {
    return this.#access.policy;
  }

  readonly isSteady: boolean;

  get signal(): AbortSignal {
    return this.#exchange.signal;
  }

  open(shared: SharedAccess, moment: Moment, tx?: Db): Promise<LiveList> {
    return this.#inRequest.runInAsyncScope(() => inTime('the rules of a live list', this.#open(shared, moment, tx)));
  }

  async #open(shared: SharedAccess, moment: Moment, tx: Db | undefined): Promise<LiveList> {
    const access = this.#access;
    const request = requestAt(await access.request(this.#context, 'list', tx), moment.at, shared.rowsOf);
    const permitted = await this.#permitted(request);
    const view = await access.view(request);
    // The names that a caller may use are those of its view.
    const { tenant } = request;
    const people = await knownPeople(access.policy, request, shared);
    const known = asText([...people.values()]);
    if (this.#query?.view !== view || this.#query.tenant !== tenant || this.#query.known !== known)
      this.#query = { view, tenant, known, list: await this.#read(request, view, moment, people) };
    // A parent that the caller does not see any more ends the stream: the list at its address is a 404.
    if (access.parent !== undefined) await access.parentRows(this.#context, request, access.policy.database(request), true);
    return listNow(access, request, view, this.#query.list, moment, permitted);
  }

  /** The permission of the route, asked again: a stream outlives its admission. */
  async #permitted(request: CrudRequest): Promise<readonly CompiledWhere[]> {
    const exchange = this.#exchange;
    const { permission } = exchange.route as CompiledRoute;
    const verdict = await permission.evaluate(exchange);
    if (verdict === false) throw coreErrors.permission_denied();
    const rows = verdict === true ? true : await permission.rows(exchange);
    if (rows === undefined) throw coreErrors.permission_denied();
    exchange.verdict = true;
    return rows === true ? [] : [await this.policy.rows.compiledRule(request, rows as Where | boolean)];
  }

  async #read(request: CrudRequest, view: View, moment: Moment, known: KnownRows): Promise<ListRequest & FollowedList> {
    const { filters, ...list } = await this.#readAt(request, view, known);
    if (list.expand.length > 0)
      throw notLive({ location: ['query', 'expand'], code: 'not_live', message: 'Changes of related records cannot be followed.' });
    const then = await this.#readAt(requestAt(request, later(moment)), view, known);
    const compiled = filters.map((each, place) => each.moving(moment.at, then.filters[place] as CompiledWhere, later(moment)));
    if (!compiled.every((each) => each !== undefined))
      throw notLive({
        location: ['query'],
        code: 'not_live',
        message:
          'A filter depends on the time in a way that cannot be followed: records can be compared with now, or with a time that is always as far from it.',
      });
    if (!filters.every(isDecidable))
      throw notLive({
        location: ['query'],
        code: 'not_live',
        message: 'A filter or the search depends on other records, or on columns that are not logged.',
      });
    const { derived } = this.policy;
    const isFollowed = ({ name, load, ofRow, related }: ViewComputed) =>
      derived.has(name)
        ? [...related.keys()].every((each) => known.has(each))
        : (load === undefined || ofRow === true) && related.size === 0;
    if (!unitOf(this.#access, view, list).shape.computed.every(isFollowed))
      throw notLive({
        location: ['query', 'fields'],
        code: 'not_live',
        message: 'A field depends on other records. Use `fields` to leave it out.',
      });
    return { ...list, compiled, known };
  }

  async #readAt(request: CrudRequest, view: View, known: KnownRows): Promise<ListRequest & { readonly filters: readonly CompiledWhere[] }> {
    const list = await this.#readQuery(new ListQueryReader(this.#access.list, request, view));
    const where = [...list.where, ...this.#ofParent()];
    const filters = (await conditions(request, this.policy, where, [])).map((each) => each.deciding(known));
    return { ...list, fields: list.fields ?? followedFields(this.#access, view), where, filters };
  }

  #ofParent(): Where[] {
    const { parent } = this.#access;
    return parent === undefined ? [] : [{ [parent.edge.column]: this.#access.parentValue(this.#context) } as Where];
  }

  async seal({ position: { text, origin }, at }: LivePlace, rights: string): Promise<string> {
    const cursors = await this.#access.cursors();
    const position = [text, origin, at.getTime()];
    try {
      return cursors.write({ position, backwards: false, count: null }, this.#bound(rights));
    } catch (error) {
      // A snapshot with hundreds of open transactions: without an id, the client begins again.
      if (error instanceof RangeError) return '';
      throw error;
    }
  }

  /** Where the client continues. Another caller, query, right or database than that of the position is none. */
  async resumed(db: Db, id: string): Promise<Resumed | 'lost'> {
    const { rights } = await this.open(new SharedAccess(), { at: this.#exchange.clock.now() });
    const content = (await this.#access.cursors()).read(id, this.#bound(rights));
    if (content === undefined) return 'lost';
    const [text, origin, at] = content.position as [string, string, number];
    if (at < this.#exchange.clock.now().getTime() - WINDOW_MS || !(await isKnown(db, { text, origin }))) return 'lost';
    return { place: { position: { text, origin }, at: new Date(at) }, rights };
  }

  /** What a position belongs to. */
  #bound(rights: string): string {
    const { user, principal, knownTenant, route } = this.#exchange;
    const { mount, controller, field } = route as CompiledRoute;
    const { list } = this.#query as { readonly list: ListRequest };
    const access = this.#access;
    const below = access.parent === undefined ? null : String(access.parent.edge.target.key.encode(access.parentValue(this.#context)));
    const query = [list.binding, list.fields ?? null, list.ordering, below];
    return JSON.stringify([
      'live',
      mount,
      controller,
      field,
      user?.id ?? null,
      principal?.credentialId ?? null,
      knownTenant,
      query,
      rights,
    ]);
  }
}

/** The same list, of which only is told that it changes. */
class RequestedNews extends RequestedList {
  override async open(shared: SharedAccess, moment: Moment, tx?: Db): Promise<LiveList> {
    return keysOnly(this.policy, await super.open(shared, moment, tx));
  }

  /** They begin again with what they read themselves. */
  override seal(): Promise<string> {
    return Promise.resolve('');
  }
}
