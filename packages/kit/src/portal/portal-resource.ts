import type { AdminAction, AdminContext, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
import { labelOf } from '../app/admin/model-columns.ts';
import type { PortalAction, PortalPage } from '../app/admin/portal-page.ts';
import { adminBuckets } from '../app/admin/range.ts';
import type { AdminChart, AdminOverview, AdminRecord, AdminTile } from '../app/admin/sections.ts';
import type {
  AdminField,
  AdminFileFormat,
  AdminFilter,
  AdminPage,
  AdminRange,
  AdminResult,
  AdminRow,
  AdminSecret,
} from '../app/admin/shapes.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { isKitError } from '../errors/kit-error.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { isShown } from './access.ts';
import { BELOW, borrowedAction, madeBy } from './borrowed-action.ts';
import { callOperation, jsonOf, pieces, unlessRefused } from './call.ts';
import { chartPlan, drawnChart } from '../app/admin/stats-charts.ts';
import { columnsOf, drawnRows, rowOf, sectionsOf } from './page-record.ts';
import type { PageRoutes } from './page-routes.ts';
import { nextOf, sized } from './paging.ts';
import { fieldOf, filterOf, itemSchema, itemsOf, propertiesOf, resolved, type Schema } from './schema-words.ts';
import { given, inFields } from './sent-fields.ts';

type Item = Readonly<Record<string, unknown>>;

const DAY_MS = 86_400_000;

/** Others whose records are listed together where none was chosen, and records of each. */
const PARENTS_MAX = 20;

/** A page as a list of the site: every read and change is a call of the mounted operation. */
export class PageResource {
  readonly #page: PortalPage;
  readonly #routes: PageRoutes;
  readonly #above: PageRoutes | undefined;
  readonly #omitted: ReadonlySet<string>;
  /** All pages: those whose lists refer to this one have charts on its records. */
  charted: readonly PageResource[] = [];

  constructor(page: PortalPage, routes: PageRoutes, above: PageRoutes | undefined) {
    this.#page = page;
    this.#routes = routes;
    this.#above = above;
    this.#omitted = new Set(page.omits?.(routes.controller));
  }

  resource(): AdminResource {
    const page = this.#page;
    const { name, label, singular, group, description, icon, live, removal, empty, filters = [] } = page;
    const { list, create, edit, remove } = this.#routes;
    const parameters = propertiesOf(list.query?.json);
    const above = this.#page.below;
    const exporting = this.#routes.export;
    return {
      name,
      label,
      singular,
      group,
      ...(description === undefined ? {} : { description }),
      ...(icon === undefined ? {} : { icon }),
      ...(live === undefined ? {} : { live }),
      ...(removal === undefined ? {} : { removal }),
      ...(empty === undefined ? {} : { empty }),
      columns: columnsOf(this.#page, itemsOf(list.response?.json)),
      filters: [
        ...(above === undefined ? [] : [{ name: this.#parentKey, label: above.label, kind: 'reference' as const, of: above.page }]),
        ...filters.flatMap(({ name: parameter, label: words, of, isOpen: isOpenFilter }): readonly AdminFilter[] => {
          const schema = parameters[parameter];
          if (schema === undefined) return [];
          const isOpen = of === undefined || isOpenFilter === true;
          return [isOpen ? filterOf(parameter, words, schema) : { name: parameter, label: words, kind: 'reference', of }];
        }),
      ],
      related: [
        ...(above === undefined ? [] : [{ to: above.page, filter: this.#parentKey }]),
        ...filters.flatMap(({ name: filter, of }) => (of === undefined || parameters[filter] === undefined ? [] : [{ to: of, filter }])),
      ],
      table: name,
      creation: create === undefined ? { refused: this.#page.madeBy ?? 'The API makes them.' } : { fields: this.#fields(create) },
      editable: edit !== undefined,
      removable: remove !== undefined,
      actions: [
        ...[...this.#routes.actions].map(([segment, route]) => this.#action(segment, route)),
        ...Object.entries(page.borrows ?? {}).map(([borrowed, words]) => borrowedAction(borrowed, words, this)),
      ],
      ...(exporting === undefined
        ? {}
        : {
            exports: ['csv', 'jsonl'] as const,
            exportRows: (context: AdminContext, { filters: asked }: AdminListQuery, format: AdminFileFormat) =>
              pieces(context, exporting, { ...asked, format }),
          }),
      ...(page.suggestions === undefined
        ? {}
        : {
            suggestions: ({ db, principal }: AdminContext) =>
              Promise.resolve(page.suggestions?.({ db, controller: this.#routes.controller, isStaff: principal.user.is_staff }) ?? {}),
          }),
      list: (context, query) => this.#list(context, query),
      titles: async (context, ids) => {
        const found = await Promise.all(ids.map((id) => this.#find(context, id)));
        return new Map(found.flatMap((item, index) => (item === null ? [] : [[ids[index] as string, rowOf(this.#page, item, '').title]])));
      },
      read: (context, id, range) => this.#read(context, id, range),
      ...(create === undefined ? {} : { create: (context: AdminContext, fields: Item) => this.#create(context, create, fields) }),
      ...(edit === undefined
        ? {}
        : {
            update: async (context: AdminContext, id: string, fields: Item): Promise<AdminResult> => {
              await callOperation(edit, context, { params: this.#params(id), body: given(fields, edit) });
              return { message: 'Saved.', id };
            },
          }),
      ...(remove === undefined
        ? {}
        : {
            remove: async (context: AdminContext, id: string): Promise<AdminResult> => {
              await callOperation(remove, context, { params: this.#params(id) });
              return { message: `${labelOf(singular)} removed.` };
            },
          }),
    };
  }

  /** How many records there are of each kind that a tile counts. A page that this caller may not see has none. */
  async overview(context: AdminContext, range: AdminRange): Promise<AdminOverview> {
    const { label, tiles: declared = [], name, filters = [] } = this.#page;
    const now = context.clock.now();
    const { since } = adminBuckets(range, now, 1);
    const counted = declared.map(async (tile): Promise<AdminTile[]> => {
      const { ahead } = tile;
      const parameters = {
        ...tile.parameters,
        ...(tile.since === undefined ? {} : { [tile.since]: since.toISOString() }),
        ...(ahead === undefined ? {} : { [ahead.parameter]: new Date(now.getTime() + ahead.days * DAY_MS).toISOString() }),
      };
      const count = await unlessRefused(() => this.#count(context, parameters));
      if (count === null) return [];
      const filtered = Object.entries(parameters).filter(([each]) => filters.some((filter) => filter.name === each));
      return [
        {
          label: tile.label,
          value: count ?? '1,000 or more',
          unit: 'count',
          tone: tile.isBad === true && count !== 0 ? 'bad' : 'neutral',
          link: { resource: name, filters: Object.fromEntries(filtered) },
        },
      ];
    });
    const [tiles, charts] = await Promise.all([Promise.all(counted), this.charts(context, range, {})]);
    return { title: label, tiles: tiles.flat(), charts, tables: [] };
  }

  /** Of all others that they may be below. Undefined: more than the list counts. */
  async #count(context: AdminContext, filters: Readonly<Record<string, string>>): Promise<number | undefined> {
    const above = this.#above === undefined ? [{}] : (await this.#parents(context)).map((id) => ({ [this.#parentKey]: id }));
    const pages = await Promise.all(above.map((params) => this.#call(context, { filters, limit: 1, cursor: null }, params)));
    const counts = pages.map(({ count }) => count);
    return counts.every((each) => typeof each === 'number') ? counts.reduce((sum, each) => sum + each, 0) : undefined;
  }

  /** Charts of the records that the filters find, of all others that they may be below. None where this caller may not see them. */
  async charts(context: AdminContext, range: AdminRange, filters: Readonly<Record<string, string>>): Promise<readonly AdminChart[]> {
    const { stats, list } = this.#routes;
    const { charts = [] } = this.#page;
    if (stats === undefined || charts.length === 0) return [];
    const fields = itemsOf(list.response?.json);
    const { [this.#parentKey]: parent, ...narrowing } = filters;
    const above = this.#above === undefined ? [undefined] : parent === undefined ? await this.#parents(context) : [parent];
    const drawn = charts.map(async (chart) => {
      const plan = chartPlan(chart, fields[chart.time]?.format === 'date', range, context.clock.now());
      const asked = above.map(async (each) => {
        const params = each === undefined ? {} : { [this.#parentKey]: each };
        return jsonOf(await callOperation(stats, context, { params, query: { ...narrowing, ...plan.query } }))['items'];
      });
      const rows = await unlessRefused(() => Promise.all(asked));
      return rows === null ? [] : [drawnChart(chart, plan, rows.flat() as Item[])];
    });
    return (await Promise.all(drawn)).flat();
  }

  /** The filter by which charts of this list are about one record of the page. */
  #filterFor(page: string): string | undefined {
    const { below, filters = [] } = this.#page;
    return below?.page === page ? this.#parentKey : filters.find(({ of, isMoment }) => of === page && isMoment !== true)?.name;
  }

  /** The ids of the newest others that records of this list are below. */
  async #parents(context: AdminContext): Promise<readonly string[]> {
    const { list } = this.#above as PageRoutes;
    const found = await unlessRefused(() => callOperation(list, context, { query: sized(list, PARENTS_MAX, null) }));
    return found === null ? [] : ((jsonOf(found)['items'] ?? []) as readonly Item[]).map((each) => String(each['id']));
  }

  get page(): PortalPage {
    return this.#page;
  }

  /** Whether the list has a record with these parameters; null where this caller may not see it. */
  async hasRecords(context: AdminContext, filters: Readonly<Record<string, string>>): Promise<boolean | null> {
    const query = { search: null, filters, sort: null, limit: 1, cursor: null };
    const page = await unlessRefused(() => this.#list(context, query));
    return page === null ? null : page.items.length > 0;
  }

  /** The page with this name, where it is shown. */
  other(name: string): PageResource | undefined {
    return this.charted.find(({ page }) => page.name === name);
  }

  /** A record as the API returns it; null where there is none for this caller. */
  find(context: AdminContext, id: string): Promise<Item | null> {
    return this.#find(context, id);
  }

  /** Calls `edit` or an action of a record. */
  async act(context: AdminContext, id: string, operation: string, body: object): Promise<Item> {
    const route = operation === 'edit' ? this.#routes.edit : this.#routes.actions.get(operation);
    if (route === undefined) throw coreErrors.not_found();
    return jsonOf(await inFields(() => callOperation(route, context, { params: this.#params(id), body })));
  }

  /** What the page calls, the list of those that its records are below included. */
  get operations(): readonly CompiledRoute[] {
    const { list, read, create, edit, remove, export: exporting, stats, actions } = this.#routes;
    const all = [list, read, create, edit, remove, exporting, stats, ...actions.values(), this.#above?.list];
    return all.filter((route) => route !== undefined);
  }

  get list(): CompiledRoute {
    return this.#routes.list;
  }

  get isCreatable(): boolean {
    return this.#routes.create !== undefined;
  }

  /** The parameter of the path that names the other record. */
  get #parentKey(): string {
    return this.#routes.keys[0] ?? 'id';
  }

  #fields(route: CompiledRoute): readonly AdminField[] {
    const body = route.body?.json;
    const required = new Set(body === undefined ? [] : resolved(body).required);
    return Object.entries(propertiesOf(body))
      .filter(([name, { readOnly }]) => readOnly !== true && !this.#omitted.has(name))
      .map(([name, schema]) => fieldOf(name, schema, required.has(name)));
  }

  /** By the names of the path's parameters. */
  #params(id: string): Readonly<Record<string, string>> {
    const ids = this.#above === undefined ? [id] : id.split(BELOW);
    return Object.fromEntries(this.#routes.keys.map((key, index) => [key, ids[index] ?? '']));
  }

  #idOf(item: Item, parent: string | undefined): string {
    const own = String(item[this.#page.key ?? 'id']);
    return parent === undefined ? own : `${parent}${BELOW}${own}`;
  }

  async #list(context: AdminContext, query: Omit<AdminListQuery, 'cursors' | 'bound'>): Promise<AdminPage> {
    if (this.#above === undefined) return this.#page1(context, query, undefined);
    const { [this.#parentKey]: parent, ...filters } = query.filters;
    if (parent !== undefined) return this.#page1(context, { ...query, filters }, parent);
    // Of none in particular: the newest of each.
    const parents = jsonOf(await callOperation(this.#above.list, context, { query: sized(this.#above.list, PARENTS_MAX, null) }));
    const pages = await Promise.all(
      ((parents['items'] ?? []) as readonly Item[]).map((each) => this.#page1(context, { ...query, cursor: null }, String(each['id']))),
    );
    const at = ({ values }: AdminPage['items'][number]): string => {
      const { created_at: created } = values;
      return typeof created === 'string' ? created : '';
    };
    const items = pages.flatMap((page) => page.items).toSorted((a, b) => (at(a) < at(b) ? 1 : -1));
    const isCut = pages.some(({ next }) => next !== null) || items.length > query.limit || parents['next'] != null;
    return { items: items.slice(0, query.limit), count: items.length, next: null, ...(isCut ? { atLeast: true } : {}) };
  }

  async #page1(
    context: AdminContext,
    query: Pick<AdminListQuery, 'filters' | 'limit' | 'cursor'>,
    parent: string | undefined,
  ): Promise<AdminPage> {
    const params = parent === undefined ? {} : { [this.#parentKey]: parent };
    const answer = await this.#call(context, query, params);
    const items = (answer['items'] ?? []) as readonly Item[];
    const { count } = answer;
    return {
      items: await drawnRows(
        this.#page,
        items.map((item) => ({ item, id: this.#idOf(item, parent) })),
        context,
      ),
      count: typeof count === 'number' ? count : null,
      next: nextOf(this.#routes.list, answer, query),
    };
  }

  async #call(
    context: AdminContext,
    { filters, limit, cursor }: Pick<AdminListQuery, 'filters' | 'limit' | 'cursor'>,
    params: Readonly<Record<string, string>>,
  ) {
    const { list } = this.#routes;
    return jsonOf(await callOperation(list, context, { params, query: { ...filters, ...sized(list, limit, cursor) } }));
  }

  async #find(context: AdminContext, id: string): Promise<Item | null> {
    const { read, list } = this.#routes;
    if (read === undefined) {
      if (this.#page.collection === undefined) return null;
      const items = (jsonOf(await callOperation(list, context, {}))['items'] ?? []) as readonly Item[];
      return items.find((item) => this.#idOf(item, undefined) === id) ?? null;
    }
    try {
      return jsonOf(await callOperation(read, context, { params: this.#params(id) }));
    } catch (error) {
      // What is no id of such a record, and what others have, is not there.
      if (isKitError(error) && (error.status === 404 || error.status === 422)) return null;
      throw error;
    }
  }

  async #read(context: AdminContext, id: string, range: AdminRange = '7d'): Promise<AdminRecord | null> {
    const item = await this.#find(context, id);
    if (item === null) return null;
    const { list, read, edit, remove, actions } = this.#routes;
    const fields = edit === undefined ? [] : this.#fields(edit).filter(({ name }) => name in item);
    const borrowed = Object.entries(this.#page.borrows ?? {}).filter(([, { page: of }]) => isShown(context, of));
    const related = this.charted.map((other) => {
      const filter = other.#filterFor(this.#page.name);
      return filter === undefined || !isShown(context, other.#page.name)
        ? Promise.resolve([])
        : other.charts(context, range, { [filter]: id });
    });
    const charts = (await Promise.all(related)).flat();
    const [row] = (await drawnRows(this.#page, [{ item, id }], context)) as [AdminRow];
    return {
      ...row,
      sections: [
        ...sectionsOf(this.#page, item, row.values, read?.response?.json ?? itemSchema(list.response?.json)),
        ...charts.map((chart) => ({ kind: 'chart' as const, chart })),
      ],
      ...(charts.length === 0 ? {} : { range }),
      ...(fields.length === 0 ? {} : { form: { fields, values: Object.fromEntries(fields.map(({ name }) => [name, item[name]])) } }),
      actions: [...actions.keys(), ...borrowed.map(([name]) => name)],
      removable: remove !== undefined,
    };
  }

  async #create(context: AdminContext, route: CompiledRoute, fields: Item): Promise<AdminResult> {
    const answer = jsonOf(await callOperation(route, context, { body: given(fields, route) }));
    const { title } = rowOf(this.#page, answer, '');
    return { message: `${title} created.`, id: String(answer['id']), ...this.#secretOf(route, answer) };
  }

  /** A value that is shown once. */
  #secretOf(route: CompiledRoute, answer: Item): { readonly secret?: AdminSecret } {
    const sensitive = Object.entries(propertiesOf(route.response?.json as Schema | undefined)).find(
      ([name, schema]) => schema['x-sensitive'] === true && typeof answer[name] === 'string',
    );
    if (sensitive === undefined) return {};
    const { label = labelOf(sensitive[0]), note = 'It is shown this once.' } = this.#page.secret ?? {};
    return { secret: { label, value: String(answer[sensitive[0]]), note } };
  }

  #action(segment: string, route: CompiledRoute): AdminAction {
    const words: PortalAction = this.#page.actions?.[segment] ?? { label: labelOf(segment.replaceAll('-', '_')), done: 'Done.' };
    const fields = this.#fields(route);
    const { confirm } = words;
    return {
      name: segment,
      label: words.label,
      tone: words.tone ?? 'neutral',
      on: 'record',
      ...(confirm === undefined ? {} : { confirm }),
      ...(fields.length === 0 ? {} : { fields }),
      run: async (context, [id = ''], values) => {
        const body = route.body === undefined ? {} : { body: given(values, route) };
        const answer = jsonOf(await inFields(() => callOperation(route, context, { params: this.#params(id), ...body })));
        return { message: words.done, id, ...madeBy(words, id, answer), ...this.#secretOf(route, answer) };
      },
    };
  }
}
