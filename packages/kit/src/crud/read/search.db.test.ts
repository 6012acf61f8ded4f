import { wholeDocument } from '../../../test/whole-document.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { byName, people, startShop, type Person, type ShopApp } from '../../../test/crud/shop.ts';
import type { Module } from '../../app/declare/module.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { createTable, migration, model, softDelete, t, versioned, whereSql } from '../../db/index.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { describeResources } from '../inspect/describe-resource.ts';
import { count, CrudController, fullText, resource, type SearchBackend, visibleTo } from '../index.ts';

const columns = {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  title: t.text(200),
  body: t.text().nullable(),
  secret_plan: t.text().nullable(),
  number: t.int().dbDefault(0),
  ...versioned(),
  ...softDelete(),
};
const options = { fullText: [{ columns: ['title', 'body'] }] };
const pages = model('pages', columns, options);
const pageResource = resource(pages, {
  tenant: 'org',
  owner: { column: 'owner_id', unless: isStaff },
  version: 'version',
  softDelete: true,
  fields: { secret_plan: visibleTo(isStaff) },
});
class PageController extends CrudController(pageResource, {
  permission: isAuthenticated,
  filters: { number: ['eq', 'gte'] },
  search: fullText({ columns: ['title', 'body'] }),
  ordering: { by: ['number'] },
  page: { default: 20, max: 100, count: { upTo: 100 } },
  export: ['jsonl'],
  stats: { metrics: { pages: count() } },
  meta: true,
  restore: true,
}) {}
class WordController extends CrudController(pageResource, {
  permission: isAuthenticated,
  search: fullText({ columns: ['body', 'title'], prefix: false }),
}) {}

/** One of an application's own: what a search engine would do, found by the caller's id. */
const asked: string[] = [];
const engine: SearchBackend<'title'> = {
  name: 'engine',
  columns: ['title'],
  description: 'Titles that start so.',
  async where(text, { caller, dialect }) {
    asked.push(`${caller.user?.username} ${dialect} ${text}`);
    return text === 'sql' ? whereSql('length(this.title) > $1', [0]) : { title: { starts: text } };
  },
};
class EngineController extends CrudController(pageResource, { permission: isAuthenticated, search: engine }) {}

const module: Module = {
  name: 'pages',
  models: [pages],
  migrations: [migration('0001_pages', [createTable('pages', columns, options)])],
};
const mount = { '/v1': { '/pages': PageController, '/words': WordController, '/engine': EngineController } };

describeDatabases('search backends', (database) => {
  let shop: ShopApp;
  const page = (person: Person, title: string, more: Partial<Record<string, unknown>> = {}) => ({
    org: people[person].tenant ?? 'north',
    owner_id: people[person].id,
    title,
    ...more,
  });
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount, modules: [module] });
    await insertMany(database.db, pages, [
      page('ann', 'Café crème', { body: 'Two cups of coffee, foo-bar.com', secret_plan: 'sell everything', number: 1 }),
      page('ann', 'Coffee machine', { body: "It's broken", number: 2 }),
      page('ann', 'ÜBER Straße №5', { body: null, number: 3 }),
      page('bob', 'Coffee of bob', { body: 'private' }),
      page('cid', 'Coffee of the south', { body: 'café' }),
    ] as never);
  });
  afterAll(() => shop.close());

  const titles = async (person: Person, text: string, path = 'pages', more = '') => {
    const { status, body } = await shop.call(person, 'GET', `${path}?search=${encodeURIComponent(text)}${more}`);
    expect([text.slice(0, 40), status]).toEqual([text.slice(0, 40), 200]);
    return (body.items as { title: string }[]).map(({ title }) => title).sort();
  };

  test('82: full text finds "cafe" in "Café", all words must match, in any order and column', async () => {
    expect(await titles('ann', 'cafe')).toEqual(['Café crème']);
    expect(await titles('ann', 'CAFÉ')).toEqual(['Café crème']);
    expect(await titles('ann', 'cafe\u0301')).toEqual(['Café crème']);
    expect(await titles('ann', 'cups creme')).toEqual(['Café crème']);
    expect(await titles('ann', 'cups machine')).toEqual([]);
    expect(await titles('ann', 'coffee')).toEqual(['Café crème', 'Coffee machine']);
    expect(await titles('ann', 'uber 5')).toEqual(['ÜBER Straße №5']);
    expect(await titles('ann', 'bar com foo')).toEqual(['Café crème']);
    expect(await titles('ann', 'foo-bar.com')).toEqual(['Café crème']);
    expect(await titles('ann', "it's")).toEqual(['Coffee machine']);
  });

  test('82: a word finds itself, and itself without accents, in other alphabets too', async () => {
    const made = ['йод', 'ёлка', 'елка', 'όμορφος', 'हिन्दी', '한국어', '東京', 'thắng'];
    await insertMany(database.db, pages, made.map((title) => page('ann', title)) as never);
    try {
      for (const title of made) {
        expect([title, await titles('ann', title)]).toEqual([title, expect.arrayContaining([title])]);
        expect([title, await titles('ann', title.normalize('NFD'), 'words')]).toEqual([title, expect.arrayContaining([title])]);
      }
      expect(await titles('ann', 'ёлка')).toEqual(['елка', 'ёлка']);
      expect(await titles('ann', 'йод thắng')).toEqual([]);
    } finally {
      await database.db.query(`delete from pages where owner_id = $1 and title in (${made.map((_, index) => `$${index + 2}`).join()})`, [
        people.ann.id,
        ...made,
      ]);
    }
  });

  test('82: a word finds longer ones that start with it, unless prefix is false; never the middle of one', async () => {
    expect(await titles('ann', 'cof mach')).toEqual(['Coffee machine']);
    expect(await titles('ann', 'cof', 'words')).toEqual([]);
    expect(await titles('ann', 'coffee machine', 'words')).toEqual(['Coffee machine']);
    expect(await titles('ann', 'offee')).toEqual([]);
  });

  test('82: an update is found at once, a deleted row is not, a restored one is again', async () => {
    const made = await shop.call('ann', 'POST', 'pages', { title: 'Zebra crossing' });
    expect(await titles('ann', 'zebra')).toEqual(['Zebra crossing']);
    const url = `pages/${made.body.id}`;
    expect((await shop.call('ann', 'PATCH', url, { title: 'Giraffe', body: 'tall' })).status).toBe(200);
    expect([await titles('ann', 'zebra'), await titles('ann', 'giraffe tall')]).toEqual([[], ['Giraffe']]);
    await shop.call('ann', 'DELETE', url);
    expect(await titles('ann', 'giraffe')).toEqual([]);
    expect((await shop.call('ann', 'GET', 'pages?search=giraffe&deleted=only')).body.items).toHaveLength(1);
    await shop.call('ann', 'POST', `${url}/restore`);
    expect(await titles('ann', 'giraffe')).toEqual(['Giraffe']);
    await database.db.query('delete from pages where id = $1', [made.body.id]);
    expect(await titles('ann', 'giraffe')).toEqual([]);
  });

  test('2: a search shows and counts rows of the caller and tenant only: list, count, QUERY, export, stats', async () => {
    expect(await titles('bob', 'coffee')).toEqual(['Coffee of bob']);
    expect(await titles('cid', 'coffee')).toEqual(['Coffee of the south']);
    expect(await titles('sue', 'coffee')).toEqual(['Café crème', 'Coffee machine', 'Coffee of bob']);
    const list = await shop.call('bob', 'GET', 'pages?search=coffee');
    expect([list.body.count, list.headers['x-total-count']]).toEqual([1, '1']);
    const query = await shop.call('bob', 'QUERY', 'pages', { search: 'coffee', where: { number: { gte: 0 } } });
    expect([query.status, query.body.count]).toEqual([200, 1]);
    const file = await shop.inject({ url: '/v1/pages/export?search=coffee', headers: { 'x-user': 'bob' } });
    expect(
      file.body
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { title: string }).title),
    ).toEqual(['Coffee of bob']);
    expect((await shop.call('bob', 'GET', 'pages/stats?search=coffee&metrics=pages')).body.items).toEqual([{ pages: 1 }]);
  });

  test('34: a field that some callers may not see is not searched, for any caller', async () => {
    for (const person of ['ann', 'sue'] as const) expect(await titles(person, 'everything')).toEqual([]);
    const meta = await shop.call('ann', 'GET', 'pages/meta');
    expect(meta.body.search).toEqual({ columns: ['title', 'body'] });
  });

  test.each([
    '"',
    '""',
    "'",
    "''",
    '\\',
    '*',
    'a*',
    '*a',
    'a AND',
    'NOT',
    'NOT a',
    'or',
    'a OR b',
    'NEAR(a b)',
    'a NEAR b',
    'title:a',
    '{title body}:a',
    '^a',
    '-a',
    '!a',
    '!',
    'a & ',
    'a <-> b',
    ':*',
    'a:*b',
    '(',
    'a)',
    '<',
    '%',
    '_',
    "'; drop table pages; --",
    '\u{1f600}',
    'ﷺ',
    '١٢٣',
    '\u200d',
    '\u0301',
    'क्षि',
    '한국어',
    'a'.repeat(200),
    '🏳️‍🌈 a',
    'x\'y"z',
  ])('a hostile text is only words: %j is answered with 200', async (text) => {
    await titles('ann', text);
    await titles('ann', text, 'words');
    const query = await shop.call('ann', 'QUERY', 'pages', { search: text });
    expect(query.status).toBe(200);
  });

  test('a text that cannot be searched for is refused: U+0000, half a surrogate pair, 10 kB, eleven words, twice', async () => {
    const refused = async (url: string) => {
      const { status, body } = await shop.call('ann', 'GET', url);
      return [status, body.errors?.[0]?.location, body.errors?.[0]?.code];
    };
    expect(await refused('pages?search=a%00b')).toEqual([422, ['query', 'search'], 'invalid']);
    expect(await refused(`pages?search=${'x'.repeat(1000)}`)).toEqual([422, ['query', 'search'], 'too_long']);
    expect((await refused(`pages?search=${'x'.repeat(10_000)}`))[0]).toBe(414);
    expect(await refused('pages?search=1+2+3+4+5+6+7+8+9+10+11')).toEqual([422, ['query', 'search'], 'too_many']);
    expect(await refused('pages?search=a&search=b')).toEqual([422, ['query', 'search'], 'duplicate']);
    const asked = async (search: string) => (await shop.call('ann', 'QUERY', 'pages', { search })).status;
    expect([await asked('\ud800'), await asked('a\u0000'), await asked('x'.repeat(10_000))]).toEqual([400, 400, 422]);
  });

  test('a search has 200 characters and 10 words, whatever the characters', async () => {
    const status = async (search: string) => [
      (await shop.call('ann', 'GET', `pages?search=${encodeURIComponent(search)}`)).status,
      (await shop.call('ann', 'QUERY', 'pages', { search })).status,
    ];
    for (const character of ['x', 'é', '漢', '😀']) {
      expect([character, await status(character.repeat(200))]).toEqual([character, [200, 200]]);
      expect([character, await status(character.repeat(201))]).toEqual([character, [422, 422]]);
    }
    expect([await status('a '.repeat(10)), await status('a '.repeat(11))]).toEqual([
      [200, 200],
      [422, 422],
    ]);
  });

  test('words are counted as they are searched for: by blanks where parts of a word are found, else by everything that separates them', async () => {
    const statuses = async (search: string) => {
      const found = [];
      for (const path of ['pages', 'words', 'pages/stats', 'pages/export'])
        found.push((await shop.call('ann', 'GET', `${path}?search=${encodeURIComponent(search)}`)).status);
      return [...found, (await shop.call('ann', 'QUERY', 'pages', { search })).status];
    };
    const words = (count: number, separator: string) => Array.from({ length: count }, (_, index) => `w${index}`).join(separator);
    for (const separator of ['-', '.', ' - ', '/', '\u2014', '\t']) {
      expect([separator, await statuses(words(10, separator))]).toEqual([separator, [200, 200, 200, 200, 200]]);
      expect([separator, await statuses(words(11, separator))]).toEqual([separator, [422, 422, 422, 422, 422]]);
    }
    const refused = await shop.call('ann', 'GET', `pages?search=${'a-'.repeat(100)}`);
    expect(refused.body.errors).toEqual([{ location: ['query', 'search'], code: 'too_many', message: 'At most 10 words.' }]);
    // A backend that does not say what its words are gets a text without blanks as one.
    expect((await shop.call('ann', 'GET', `engine?search=${words(11, '-')}`)).status).toBe(200);
    expect((await shop.call('ann', 'GET', `engine?search=${words(11, '+')}`)).status).toBe(422);
  });

  test('punctuation alone finds nothing, blanks alone are no search', async () => {
    expect(await titles('ann', '!!! ???')).toEqual([]);
    expect((await titles('ann', '   ')).length).toBeGreaterThan(2);
  });

  test('13: pages of a search are complete and without repeats; a cursor belongs to its words; one statement each', async () => {
    await insertMany(
      database.db,
      pages,
      Array.from({ length: 60 }, (_, index) => page('bob', `Needle ${index}`, { number: index % 3 })) as never,
    );
    const seen: string[] = [];
    let url: string | null = '?search=needle&limit=7&ordering=-number';
    for (; url !== null;) {
      const { body } = await shop.call('bob', 'GET', `pages${url}`);
      seen.push(...(body.items as { id: string }[]).map(({ id }) => id));
      url = body.next as string | null;
    }
    expect([seen.length, new Set(seen).size]).toEqual([60, 60]);
    const first = await shop.call('bob', 'GET', 'pages?search=needle&limit=7');
    const cursor = new URLSearchParams(first.body.next as string).get('cursor')!;
    const other = await shop.call('bob', 'GET', `pages?search=coffee&limit=7&cursor=${cursor}`);
    expect([other.status, other.body.code]).toEqual([422, 'invalid_cursor']);
    const { count: statements } = await countQueries(() => shop.call('bob', 'GET', `pages?search=needle&limit=7&cursor=${cursor}`));
    expect(statements).toBe(1);
  });

  test('the condition reads the index of the words', async () => {
    const { queries } = await countQueries(() => shop.call('bob', 'GET', 'pages?search=needle&limit=7'));
    const { sql, parameterCount } = queries.find((query) => /match|@@/.test(query.sql))!;
    const explained = async () => {
      if (database.dialect === 'sqlite') {
        const values = Array.from({ length: parameterCount }, () => '1');
        return database.db.query(`explain query plan ${sql}`, values);
      }
      return database.db.transaction(async (tx) => {
        await tx.query('set local enable_seqscan = off');
        return tx.query(`explain select id from pages where pages_title_body_search @@ to_tsquery('simple'::regconfig, '''needle'':*')`);
      });
    };
    expect(JSON.stringify(await explained())).toContain(
      database.dialect === 'sqlite' ? 'VIRTUAL TABLE INDEX' : 'pages_title_body_search_index',
    );
  });

  test('an own backend narrows the rows of the caller, gets its text and caller, and cannot widen them', async () => {
    asked.length = 0;
    expect(await titles('bob', 'Coffee', 'engine')).toEqual(['Coffee of bob']);
    expect(asked).toEqual([`bob ${database.dialect} Coffee`]);
    expect((await titles('cid', 'sql', 'engine')).every((title) => title === 'Coffee of the south')).toBe(true);
  });

  test('OpenAPI and inspect say how a search finds rows', () => {
    const document = wholeDocument(openApiDocument(shop.app.routes, { title: 'x', version: '1' })) as unknown as {
      paths: Record<string, Record<string, { parameters: { name: string; description?: string; schema: { description?: string } }[] }>>;
    };
    const search = (path: string) => JSON.stringify(document.paths[path]?.['get']?.parameters.find(({ name }) => name === 'search'));
    expect(search('/v1/pages')).toContain('whatever their case and accents. A word also finds longer ones that start with it.');
    expect(search('/v1/engine')).toContain('Titles that start so.');
    expect(describeResources(shop.app).map(({ search: found }) => found)).toEqual([
      { backend: 'full text', columns: ['title', 'body'] },
      { backend: 'full text', columns: ['body', 'title'] },
      { backend: 'engine', columns: ['title'] },
    ]);
  });

  test('E021: the start is refused while the database lacks the search structures', async () => {
    const start = () =>
      createApp({
        database: database.url,
        log: { level: 'silent' },
        authenticators: [byName],
        tenant: () => null,
        mount,
        modules: [module],
      });
    const other = await database.open();
    await other.query(
      database.dialect === 'sqlite' ? 'drop trigger pages_title_body_search_update' : 'drop index pages_title_body_search_index',
    );
    const app = start();
    const fault = await app.ready().then(
      () => undefined,
      (error: StartUpError) => error.faults,
    );
    const hint =
      'Run: npx kit migrate. Where nothing is pending they were changed by hand: write a migration with dropFullText and createFullText.';
    expect(fault?.map((each) => [each.id, each.hint])).toEqual([
      ['E021', hint],
      ['E021', hint],
    ]);
    expect(fault?.[0]?.message).toContain('PageController: ');
  });
});

describe('declarations of search', () => {
  const faultsOf = (search: unknown, more: object = {}, from = pages) => {
    class Declared extends CrudController(resource(from, { tenant: 'org', owner: 'owner_id', ...more }), {
      permission: isAuthenticated,
      search: search as SearchBackend<'title'>,
    }) {}
    try {
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },
        authenticators: [byName],
        tenant: () => null,
        mount: { '/v1': { '/x': Declared } },
      });
      return [];
    } catch (error) {
      return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
    }
  };

  test('83: full text that the model does not declare is E012, a searched column that some may not see is E016', () => {
    expect(faultsOf(fullText({ columns: ['title'] }))).toEqual([
      'E012 Declared: search is full text of title (simple), which model("pages") does not declare.',
    ]);
    expect(faultsOf(fullText({ columns: ['title', 'body'], config: 'english' }))[0]).toContain('E012');
    expect(faultsOf(fullText({ columns: ['title', 'body'] }))).toEqual([]);
    expect(faultsOf(fullText({ columns: ['title', 'body'] }), { fields: { body: visibleTo(isStaff) } })).toEqual([
      'E016 Declared: search uses "body", which some callers cannot see.',
    ]);
    expect(faultsOf(fullText({ columns: ['title', 'body'] }), { hidden: ['body'] })[0]).toContain('E016');
    expect(faultsOf({ ...engine, columns: ['secret_plan'] }, { fields: { secret_plan: visibleTo(isStaff) } })[0]).toContain('E016');
    expect(faultsOf({ ...engine, columns: ['titel'] })[0]).toContain('search refers to the unknown column "titel"');
  });

  test('an invalid backend and unknown options are refused where they are given', () => {
    expect(() => faultsOf({ name: 'x', columns: ['title'] })).toThrow('a list of columns, or a search backend');
    expect(() => faultsOf({ ...engine, wher: () => ({}) })).toThrow('a list of columns, or a search backend');
    expect(() => fullText({ columns: ['title'], prefixes: true } as never)).toThrow('Did you mean "prefix"?');
    // @ts-expect-error -- no such column
    expect(faultsOf(fullText<'titel'>({ columns: ['titel'] }) satisfies SearchBackend<'title'>)[0]).toContain('E012');
  });
});
