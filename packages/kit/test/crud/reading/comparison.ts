import type { User } from '../../../src/auth/people/principal.ts';
import { crudOf } from '../../../src/crud/index.ts';
import type { TestApp } from '../../../src/testing/test-app.ts';
import type { Combination, Declared } from './combination.ts';
import { type Asked, type Caller, Oracle, PLAIN } from './oracle.ts';
import { type Area, type Row, tenantOf, type World } from './world.ts';

interface Response {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server returned
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface Started {
  readonly app: TestApp;
  readonly users: ReadonlyMap<string, User>;
  readonly worlds: readonly World[];
}

const FILTERS: Readonly<Record<Asked['filter'], readonly [string, unknown]>> = {
  none: ['', undefined],
  own: ['size__gte=3', { size: { gte: 3 } }],
  list: ['status__in=open,paid', { status: { in: ['open', 'paid'] } }],
  null: ['size__isnull=true', { size: { isnull: true } }],
  related: ['area__name__starts=Ac', { area: { is: { name: { starts: 'Ac' } } } }],
  relatedCode: ['area__code=X1', { area: { is: { code: 'X1' } } }],
  custom: ['mine=true', { mine: true }],
  margin: ['margin__gte=2', { margin: { gte: '2.00' } }],
  two: ['title__contains=beta&flag=true', { and: [{ title: { contains: 'BETA' } }, { flag: true }] }],
};
const SEARCHES: Readonly<Record<Asked['search'], string>> = { none: '', one: 'BETA', two: 'a s1' };
const EXPANSIONS: Readonly<Record<Asked['expand'], string>> = { none: '', area: 'area', parts: 'parts', both: 'area,parts' };

/** The parameters of a request, as a query string and as the body of QUERY. */
function requestOf(oracle: Oracle, asked: Asked) {
  const [parameters, where] = FILTERS[asked.filter];
  const fields = oracle.fieldsOf(asked);
  const expand = EXPANSIONS[asked.expand];
  const search = SEARCHES[asked.search];
  const ordering = asked.ordering === 'none' ? undefined : asked.ordering;
  const rows = [parameters, search === '' ? '' : `search=${encodeURIComponent(search)}`];
  const shape = [fields === null ? '' : `fields=${fields.join()}`, expand === '' ? '' : `expand=${expand}`];
  const join = (parts: readonly string[]) => parts.filter((part) => part !== '').join('&');
  return {
    rows: join(rows),
    shape: join(shape),
    list: join([...rows, asked.deleted === 'only' ? 'deleted=only' : '', ordering === undefined ? '' : `ordering=${ordering}`, ...shape]),
    body: {
      ...(where === undefined ? {} : { where }),
      ...(search === '' ? {} : { search }),
      ...(ordering === undefined ? {} : { ordering: ordering.split(',') }),
      ...(fields === null ? {} : { fields }),
      ...(expand === '' ? {} : { expand: expand.split(',') }),
    },
  };
}

/** RFC 4180; an empty cell is undefined, an empty text is ''. */
function parseCsv(text: string): (string | undefined)[][] {
  const lines: (string | undefined)[][] = [];
  let cells: (string | undefined)[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    if (end === '' && quoted === undefined && plain === '' && cells.length === 0) break;
    cells.push(quoted === undefined ? (plain === '' ? undefined : plain) : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    lines.push(cells);
    cells = [];
  }
  return lines;
}

/** A value as a cell: text that a spreadsheet would run as a formula gets an apostrophe. */
function cellOf(value: string | number | boolean | null | undefined, isText: boolean): string | undefined {
  if (value === null || value === undefined) return undefined;
  const text = `${value}`;
  return isText && /^[=+\-@'\t\r\n]/.test(text) ? `'${text}` : text;
}
const byText = (a: string | undefined, b: string | undefined): number => (String(a) < String(b) ? -1 : 1);
const TEXTS = new Set(['org', 'slug', 'title', 'code', 'note', 'area.org', 'area.name', 'area.code']);

/** Where two JSON values differ first, and how; empty when they are the same. */
function firstDifference(given: unknown, expected: unknown, path = ''): string {
  if (typeof given !== 'object' || typeof expected !== 'object' || given === null || expected === null)
    return given === expected ? '' : `${path}: ${JSON.stringify(given)} instead of ${JSON.stringify(expected)}`;
  const [one, other] = [given as Record<string, unknown>, expected as Record<string, unknown>];
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = firstDifference(one[name], other[name], `${path}/${name}`);
    if (found !== '') return found;
    if (name in one !== name in other) return `${path}/${name}: ${name in one ? 'is there' : 'is missing'}`;
  }
  return '';
}

/** One caller's reads of one combination, each compared with the oracle. Throws with the first difference. */
export class Comparison {
  readonly #started: Started;
  readonly #declared: Declared;
  readonly #world: World;
  readonly #caller: Caller;
  readonly #oracle: Oracle;
  /** The area above the rows; null where the controller has no parent. */
  readonly #parent: Area | null;

  constructor(started: Started, declared: Declared, world: World, caller: Caller, parent: Area | null) {
    this.#started = started;
    this.#declared = declared;
    this.#world = world;
    this.#caller = caller;
    this.#parent = parent;
    this.#oracle = new Oracle(declared.combination, world, caller);
  }

  get #combination(): Combination {
    return this.#declared.combination;
  }

  async #ask(path: string, payload?: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const { at } = this.#declared;
    const base = this.#parent === null ? `/v1/${at}/rows` : `/v1/${at}/areas/${this.#parent.id}/rows`;
    const response = await this.#started.app.inject({
      method: (payload === undefined ? 'GET' : 'QUERY') as 'GET',
      url: `${base}${path}`,
      headers: { ...(this.#caller.name === null ? {} : { 'x-user': this.#caller.name }), ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    const isJson = /json/.test(String(response.headers['content-type'])) && !/ndjson/.test(String(response.headers['content-type']));
    return {
      status: response.statusCode,
      body: isJson && response.body !== '' ? JSON.parse(response.body) : undefined,
      text: response.body,
      headers: response.headers,
    };
  }

  #equal(given: unknown, expected: unknown, message: string): void {
    const difference = firstDifference(given, expected);
    if (difference !== '') throw new Error(`${message}: ${difference}`);
  }

  #message(what: string, asked: Asked): string {
    const { combination, at } = this.#declared;
    return `${what} of ${String(this.#caller.name)}: ${JSON.stringify({ at, ...combination, ...asked, below: this.#parent?.name })}`;
  }

  /** The status of a request that cannot be served; null when it can. */
  #refusal(asked: Asked): number | null {
    if (!this.#oracle.isAdmitted) return 401;
    if (!this.#oracle.isKnown(asked)) return 422;
    return this.#parent !== null && !this.#oracle.seesArea(this.#parent) ? 404 : null;
  }

  /** Walks the list to its end. `isThorough`: also back to its beginning, by QUERY, and with its ETag. */
  async list(asked: Asked, isThorough: boolean): Promise<void> {
    const { list, body } = requestOf(this.#oracle, asked);
    const refusal = this.#refusal(asked);
    const first = await this.#ask(`?${list}`);
    if (refusal !== null) {
      this.#equal(first.status, refusal, this.#message('list', asked));
      if (isThorough && asked.deleted === 'no') this.#equal((await this.#ask('', body)).status, refusal, this.#message('query', asked));
      return;
    }
    const rows = this.#oracle.rows(asked, this.#parent?.id ?? null);
    const items = rows.map((row) => this.#oracle.item(row, asked));
    const pages = await this.#walk(first, asked, isThorough);
    const size = this.#combination.pageSize;
    const expected = Array.from({ length: Math.max(1, Math.ceil(items.length / size)) }, (_, page) =>
      items.slice(page * size, (page + 1) * size),
    );
    this.#equal(pages, expected, this.#message('list', asked));
    this.#count(first, rows.length, asked);
    if (!isThorough) return;
    await this.#tag(`?${list}`, first, asked);
    // QUERY has no deleted rows.
    if (asked.deleted === 'only') return;
    const queried = await this.#ask('?limit=100', body);
    this.#equal(queried.status, 200, this.#message('query', asked));
    this.#equal(queried.body.items, items, this.#message('query', asked));
  }

  async #walk(first: Response, asked: Asked, isThorough: boolean): Promise<Record<string, unknown>[][]> {
    this.#equal(first.status, 200, `${this.#message('list', asked)} ${first.text}`);
    this.#equal(first.body.previous, null, this.#message('first page', asked));
    const pages = [first.body.items];
    let page = first;
    while (page.body.next !== null) {
      page = await this.#ask(page.body.next);
      this.#equal(page.status, 200, this.#message('next page', asked));
      pages.push(page.body.items);
    }
    if (!isThorough) return pages;
    const back = [page.body.items];
    while (page.body.previous !== null) {
      page = await this.#ask(page.body.previous);
      back.unshift(page.body.items);
    }
    this.#equal(back, pages, this.#message('pages back', asked));
    return pages;
  }

  #count({ body, headers }: Response, length: number, asked: Asked): void {
    const { count, pageSize } = this.#combination;
    const isCounted = count === 'exact' || count === 'default' || (count === 'upTo' && (length <= 5 || length <= pageSize));
    this.#equal(body.count, isCounted ? length : null, this.#message('count', asked));
    const total = count === 'none' ? undefined : isCounted ? String(length) : '5+';
    this.#equal(headers['x-total-count'], total, this.#message('X-Total-Count', asked));
  }

  async #tag(path: string, { headers }: Response, asked: Asked): Promise<void> {
    if (this.#combination.etag === 'no') {
      this.#equal(headers['etag'], undefined, this.#message('ETag', asked));
      return;
    }
    const again = await this.#ask(path, undefined, { 'if-none-match': String(headers['etag']) });
    this.#equal([again.status, again.text], [304, ''], this.#message('ETag', asked));
  }

  /** Rows by key: those of the list are found, and all others are the same 404. */
  async rows(asked: Asked): Promise<void> {
    const shape: Asked = { ...PLAIN, fields: asked.fields, expand: asked.expand };
    const refusal = this.#refusal(shape);
    const { list } = requestOf(this.#oracle, shape);
    const seen = (row: Row) => this.#oracle.sees(row) && (this.#parent === null || row.area_id === this.#parent.id);
    const chosen = [
      ...this.#world.rows.filter((row) => seen(row)).slice(0, 2),
      ...this.#world.rows.filter((row) => !seen(row)).slice(0, 3),
    ];
    for (const row of chosen) {
      const path = `/${this.#combination.lookup === 'slug' ? row.slug : row.id}?${list}`;
      const found = await this.#ask(path);
      this.#equal(found.status, refusal ?? (seen(row) ? 200 : 404), `${this.#message(path, shape)} ${found.text}`);
      if (found.status !== 200) continue;
      this.#equal(found.body, this.#oracle.item(row, shape), this.#message(path, shape));
      if (row === chosen[0]) await this.#tag(path, found, shape);
    }
  }

  async files(asked: Asked): Promise<void> {
    const shown: Asked = {
      ...asked,
      deleted: 'no',
      expand: asked.expand === 'both' ? 'area' : asked.expand === 'parts' ? 'none' : asked.expand,
    };
    const refusal = this.#refusal(shown);
    const { list } = requestOf(this.#oracle, shown);
    const [csv, jsonl] = [await this.#ask(`/export?format=csv&${list}`), await this.#ask(`/export?format=jsonl&${list}`)];
    this.#equal([csv.status, jsonl.status], [refusal ?? 200, refusal ?? 200], this.#message('export', shown));
    if (refusal !== null) return;
    const items = this.#oracle.rows(shown, this.#parent?.id ?? null).map((row) => this.#oracle.item(row, shown));
    const lines = jsonl.text.split('\n').filter((line) => line !== '');
    this.#equal(
      lines.map((line) => JSON.parse(line) as Record<string, unknown>),
      items,
      this.#message('export as JSON Lines', shown),
    );
    const [header = [], ...cells] = parseCsv(csv.text);
    const names = this.#oracle.columns(shown);
    this.#equal(header.toSorted(byText), names.toSorted(byText), this.#message('header of the export', shown));
    const expected = items.map((item) =>
      names.map((name) => {
        const [first, second] = name.split('.') as [string, string | undefined];
        const value = second === undefined ? item[first] : (item[first] as Record<string, unknown> | null)?.[second];
        return cellOf(value as string | null | undefined, TEXTS.has(name));
      }),
    );
    const found = cells.map((line) => names.map((name) => line[header.indexOf(name)]));
    this.#equal(found, expected, this.#message('export as CSV', shown));
  }

  async stats(asked: Asked): Promise<void> {
    const filtered: Asked = { ...PLAIN, filter: asked.filter, search: asked.search };
    const { rows } = requestOf(this.#oracle, filtered);
    const refusal = this.#refusal(filtered);
    const found = await this.#ask(`/stats?group_by=status&metrics=n,total,top&${rows}`);
    this.#equal(found.status, refusal ?? 200, `${this.#message('stats', filtered)} ${found.text}`);
    if (refusal === null)
      this.#equal(
        found.body.items,
        this.#oracle.stats(this.#oracle.rows(filtered, this.#parent?.id ?? null)),
        this.#message('stats', filtered),
      );
    if (this.#oracle.isAdmitted && !this.#oracle.seesMargin)
      this.#equal((await this.#ask('/stats?group_by=margin')).status, 422, this.#message('stats by margin', filtered));
  }

  /** The list of the admin site, in its own order and in another, page by page. */
  async admin(): Promise<void> {
    const { user } = this.#caller;
    if (user?.is_staff !== true) return;
    const client = this.#started.app.as(user);
    const rows = this.#world.rows.filter((row) => this.#oracle.seesInAdmin(row));
    for (const sort of ['', '-slug', 'size']) {
      const expected = rows.toSorted((a, b) => this.#oracle.compare(a, b, sort === '' ? '-id' : sort)).map(({ id }) => id);
      const found: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const query = new URLSearchParams({ limit: '5', ...(sort === '' ? {} : { sort }), ...(cursor === '' ? {} : { cursor }) });
        const response = await client.get(`/admin/api/resources/rows-${this.#declared.at}?${query.toString()}`);
        this.#equal(response.statusCode, 200, `${this.#message('admin list', PLAIN)} ${response.body}`);
        const page = response.json() as { items: { id: string }[]; count: number | null; next: string | null };
        this.#equal(page.count, rows.length, this.#message('count of the admin list', PLAIN));
        found.push(...page.items.map(({ id }) => id));
        cursor = page.next;
      }
      this.#equal(found, expected, this.#message(`admin list by ${sort}`, PLAIN));
    }
  }

  /** What `/meta` names is what the caller may name. */
  async meta(): Promise<void> {
    const { status, body } = await this.#ask('/meta');
    if (!this.#oracle.isAdmitted) return this.#equal(status, 401, this.#message('meta', PLAIN));
    this.#equal(status, 200, this.#message('meta', PLAIN));
    const names = this.#oracle.columns(PLAIN).toSorted();
    this.#equal(body.fields.toSorted(), names, this.#message('fields of meta', PLAIN));
    this.#equal(Object.keys(body.output.properties).toSorted(), names, this.#message('output of meta', PLAIN));
    this.#equal(body.key, this.#combination.lookup, this.#message('meta', PLAIN));
    this.#equal(body.expand.toSorted(), ['area', 'parts'], this.#message('meta', PLAIN));
    const orderable = ['at', 'margin', 'price', 'size', 'slug', 'title'].filter((name) => name !== 'margin' || this.#oracle.seesMargin);
    this.#equal(body.ordering.by.toSorted(), orderable, this.#message('ordering of meta', PLAIN));
    const filters = Object.keys(body.filters);
    this.#equal(filters.includes('margin__gte'), this.#oracle.seesMargin, this.#message('filters of meta', PLAIN));
    this.#equal(filters.includes('area__code'), this.#oracle.seesAreaCode, this.#message('filters of meta', PLAIN));
    return undefined;
  }

  /** Hidden columns are unknown by every name, on every path. */
  async hiddenNames(): Promise<void> {
    if (!this.#oracle.isAdmitted) return;
    const requests: [string, object?][] = [['?code=X1'], ['?ordering=code'], ['?ordering=note'], ['?note=x'], ['?search=x&area.code=X1']];
    requests.push(['', { where: { 'area.code': 'X1' } }], ['', { where: { code: 'X1' } }], ['', { where: { area: { is: { terms: 1 } } } }]);
    if (this.#combination.code === 'hidden') requests.push(['?fields=code'], ['/export?fields=code'], ['', { fields: ['code'] }]);
    if (!this.#oracle.seesMargin)
      requests.push(['?margin__gte=1'], ['?ordering=-margin'], ['', { where: { not: { margin: { gte: '1.00' } } } }]);
    if (!this.#oracle.seesAreaCode) requests.push(['?expand=area&fields=area.code'], ['', { where: { area: { is: { code: 'X1' } } } }]);
    for (const [path, payload] of requests) {
      const { status, text } = await this.#ask(path, payload);
      this.#equal(status, 422, `${this.#message(`${path} ${JSON.stringify(payload)}`, PLAIN)} ${text}`);
    }
  }

  /** A program sees the rows of its caller, whatever the controller shows of them. */
  async program(): Promise<void> {
    if (!this.#oracle.isAdmitted) return;
    const tenant = this.#caller.name === null ? 'north' : tenantOf(this.#caller.name);
    const rows = crudOf(this.#started.app.app, this.#declared.policy).as({ user: this.#caller.user as never, tenant });
    const found = (await rows.rows()) as unknown as readonly Row[];
    const expected = this.#world.rows.filter((row) => this.#oracle.sees(row));
    const byId = <V extends { readonly id?: unknown }>(items: readonly V[]) =>
      items.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
    this.#equal(
      byId(found).map(({ id }) => id),
      expected.map(({ id }) => id),
      this.#message('program', PLAIN),
    );
    const shown = (await rows.present(found)) as unknown as readonly { readonly id: string }[];
    const items = expected.map((row) => this.#oracle.item(row, PLAIN, 'all'));
    this.#equal(JSON.parse(JSON.stringify(byId(shown))), items, this.#message('shown by a program', PLAIN));
  }
}
