import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Database } from '../engine/db.ts';
import type { Dialect } from '../dialect.ts';
import { fullTextCondition, fullTextWords } from '../declare/full-text.ts';
import { model, type Model } from '../declare/model.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import { whereSql } from '../sql/where/where-sql.ts';
import { checkDrift, modelDrift } from './drift.ts';
import { migrate } from './migrate.ts';
import { migration, type Migration } from './migration.ts';
import * as operations from './operation.ts';
import { planMigrations } from './plan.ts';
import { proposeModuleMigration } from './propose-migration.ts';

const { addColumn, alterColumn, createFullText, createTable, dropColumn, dropFullText, dropTable, renameColumn, renameTable } = operations;

function evaluate(source: string): Migration {
  const scope = { ...operations, migration, t };
  const body = source.replace(/^import .*\n/, '').replace('export default', 'return');
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the text under test is a program
  return new Function(...Object.keys(scope), body)(...Object.values(scope)) as Migration;
}

/** The labels of the rows that a search finds. */
async function found(db: Database, searched: Model, text: string, key = 'id'): Promise<unknown[]> {
  const [definition] = searched.table.fullText ?? [];
  const condition = fullTextCondition(searched.table, definition!, { words: fullTextWords(text), prefix: false }, db.dialect);
  const where = compileWhere(searched, whereSql(condition.text, [condition.value]));
  const parameters: unknown[] = [];
  const term = where.append(db.dialect, 't0', parameters);
  const rows = await db.query<{ key: unknown }>(`select t0.${key} as key from ${searched.name} t0 where ${term} order by 1`, parameters);
  return rows.map((row) => row.key);
}

async function tablesLike(db: Database, pattern: string): Promise<unknown[]> {
  const from = db.dialect === 'sqlite' ? 'sqlite_master where name' : 'pg_class where relname';
  return db.query(`select 1 as found from ${from} like $1`, [pattern]);
}

const columns = { id: t.int().pk(), title: t.text(100), body: t.text().nullable(), views: t.int().dbDefault(0) };
const fullText = [{ columns: ['title', 'body'] }];

describeDatabases('full text in migrations', (database) => {
  test('a model with full text is proposed, applied, agrees, and rows from before are found', async () => {
    const { db } = database;
    const plain = model('ft_notes', columns);
    const searched = model('ft_notes', columns, { fullText });
    const first = evaluate(proposeModuleMigration([{ name: 'ft', models: [plain] }], 'ft', 'initial')!.source);
    await migrate(db, [{ name: 'ft', migrations: [first] }]);
    await db.query(`insert into ft_notes (id, title, body) values (1, 'Café crème', null), (2, 'Tea', 'with milk-foam')`);
    const stale = [{ name: 'ft', models: [searched], migrations: [first] }];
    expect(modelDrift(stale)).toEqual(['Full text "ft_notes_title_body_search" of "ft_notes" is in the model but in no migration.']);
    const proposal = proposeModuleMigration(stale, 'ft', 'search')!;
    expect(proposal.source).toContain("createFullText('ft_notes', { columns: ['title', 'body'] })");
    expect(proposal.source).toContain('import { createFullText, migration } from');
    const modules = [{ name: 'ft', models: [searched], migrations: [first, evaluate(proposal.source)] }];
    await migrate(db, modules);
    expect(await checkDrift(modules, db)).toEqual({ models: [], database: [], additions: [] });
    expect(await found(db, searched, 'cafe CREME')).toEqual([1]);
    expect(await found(db, searched, 'foam')).toEqual([2]);
    await db.query(`update ft_notes set body = 'with lemon', id = 3 where id = 2`);
    expect([await found(db, searched, 'foam'), await found(db, searched, 'lemon tea')]).toEqual([[], [3]]);
    await db.query('delete from ft_notes where id = 3');
    expect(await found(db, searched, 'lemon')).toEqual([]);
    const without = proposeModuleMigration([{ ...modules[0]!, models: [plain] }], 'ft', 'no_search')!;
    expect(without.source).toContain("dropFullText('ft_notes', 'ft_notes_title_body_search')");
    await migrate(db, [{ name: 'ft', models: [plain], migrations: [first, evaluate(proposal.source), evaluate(without.source)] }]);
    await db.query(`insert into ft_notes (id, title) values (9, 'still writable')`);
    expect(await tablesLike(db, 'ft_notes_title%')).toEqual([]);
  });

  test('a table made with full text, keys of two columns and another configuration agrees with its printed migration', async () => {
    const { db } = database;
    const pairs = model(
      'ft_pairs',
      { a: t.int(), b: t.text(10), words: t.text(), more: t.text() },
      { primaryKey: ['a', 'b'], fullText: [{ columns: ['words'], config: 'english', name: 'pair_words' }, { columns: ['more', 'words'] }] },
    );
    const proposal = proposeModuleMigration([{ name: 'pairs', models: [pairs] }], 'pairs', 'initial')!;
    expect(proposal.source).toContain(
      "fullText: [{ columns: ['words'], config: 'english', name: 'pair_words' }, { columns: ['more', 'words'] }]",
    );
    const modules = [{ name: 'pairs', models: [pairs], migrations: [evaluate(proposal.source)] }];
    expect(modelDrift(modules)).toEqual([]);
    await migrate(db, modules);
    expect(await checkDrift(modules, db)).toEqual({ models: [], database: [], additions: [] });
    await db.query(`insert into ft_pairs (a, b, words, more) values (1, 'x', 'running dogs', 'none'), (1, 'y', 'cats', 'dogs')`);
    expect(await found(db, pairs, 'dogs', 'b')).toEqual(['x']);
    // Only a configuration of PostgreSQL knows the forms of a word.
    expect(await found(db, pairs, 'run', 'b')).toEqual(db.dialect === 'postgres' ? ['x'] : []);
  });

  test('82: after renames, changes of columns, a rebuild of the table and VACUUM the same rows are found', async () => {
    const { db } = database;
    const steps: Migration[] = [migration('0001_a', [createTable('ft_old', { ...columns, gone: t.text().nullable() }, { fullText })])];
    const apply = async (...operationsToRun: Parameters<typeof migration>[1]) => {
      steps.push(migration(`000${steps.length + 1}_step`, operationsToRun));
      await migrate(db, [{ name: 'renames', migrations: steps }], { backup: false });
      expect(await checkDrift([{ name: 'renames', migrations: steps }], db)).toEqual({ models: [], database: [], additions: [] });
    };
    await migrate(db, [{ name: 'renames', migrations: steps }]);
    const rows = Array.from({ length: 20 }, (_, index) => `(${index + 1}, 'word${index + 1} all')`).join(', ');
    await db.query(`insert into ft_old (id, title) values ${rows}`);
    await db.query('delete from ft_old where id in (1, 2, 5)');
    const now = (name: string, title: string) =>
      ({
        ...model(
          name,
          { ...columns, [title]: t.text(100) },
          { fullText: [{ columns: [title, 'body'], name: 'ft_old_title_body_search' }] },
        ),
      }) as Model;
    const expectRight = async (name: string, title: string) => {
      const searched = now(name, title);
      expect(await found(db, searched, 'word7')).toEqual([7]);
      expect(await found(db, searched, 'word5')).toEqual([]);
      expect(await found(db, searched, 'all')).toHaveLength(17);
    };
    await apply(renameColumn('ft_old', 'title', 'headline'));
    await expectRight('ft_old', 'headline');
    await apply(renameTable('ft_old', 'ft_new'));
    await expectRight('ft_new', 'headline');
    // On SQLite each of these rewrites the table.
    await apply(dropColumn('ft_new', 'gone'), alterColumn('ft_new', 'headline', t.text(200)));
    await expectRight('ft_new', 'headline');
    await apply(addColumn('ft_new', 'rank', t.int(), { backfill: '1' }));
    await expectRight('ft_new', 'headline');
    if (db.dialect === 'sqlite') await db.query('vacuum');
    else await db.query('vacuum full ft_new');
    await expectRight('ft_new', 'headline');
    await db.query(`update ft_new set headline = 'word5 again' where id = 9`);
    await db.query(`insert into ft_new (id, headline, rank) values (5, 'word99', 1)`);
    const searched = now('ft_new', 'headline');
    expect([await found(db, searched, 'word5'), await found(db, searched, 'word9'), await found(db, searched, 'word99')]).toEqual([
      [9],
      [],
      [5],
    ]);
    // A change of the values themselves is searched for as it is now.
    await apply(alterColumn('ft_new', 'headline', t.text(), { using: `'changed ' || id` }));
    expect([await found(db, searched, 'word7'), await found(db, searched, 'changed 7')]).toEqual([[], [7]]);
    await apply(dropTable('ft_new'));
    expect(await tablesLike(db, 'ft_old%')).toEqual([]);
  });

  test('what full text needs and does not fit is refused before the database is touched', () => {
    const table = createTable('ft_x', columns, { fullText });
    const planned =
      (...more: readonly operations.Operation[]) =>
      () =>
        planMigrations([{ name: 'x', migrations: [migration('0001_x', [table, ...more])] }]);
    expect(planned(dropColumn('ft_x', 'body'))).toThrow(
      '"ft_x.body" is used by full text "ft_x_title_body_search": drop the full text first',
    );
    expect(planned(alterColumn('ft_x', 'body', t.int().nullable()))).toThrow('has "body", which is not text');
    expect(planned(createFullText('ft_x', { columns: ['titel'] }))).toThrow('unknown column "titel" (did you mean "title"?)');
    expect(planned(createFullText('ft_x', { columns: ['title', 'body'] }))).toThrow('there already is a full text');
    expect(planned(dropFullText('ft_x', 'ft_x_title_body_serch'))).toThrow('did you mean "ft_x_title_body_search"?');
    expect(planned(dropFullText('ft_x', 'ft_x_title_body_search'), dropColumn('ft_x', 'body'))).not.toThrow();
    expect(() => model('ft_y', columns, { fullText: [{ columns: ['views', 'nope'] }] })).toThrow(
      'full text "ft_y_views_nope_search" has "views", which is not text; full text "ft_y_views_nope_search" names an unknown column "nope"',
    );
    expect(() => createFullText('ft_y', { columns: ['title'], config: "x'; drop" })).toThrow('text search configuration');
  });

  test('what is missing or was changed by hand in the database is named', async () => {
    const { db } = database;
    const hands = [{ name: 'ft_hands', migrations: [migration('0001_a', [createTable('ft_hands', columns, { fullText })])] }];
    await migrate(db, hands);
    const drift = async () => (await checkDrift(hands, db)).database;
    expect(await drift()).toEqual([]);
    const steps: Record<Dialect, readonly (readonly [statements: readonly string[], faults: readonly string[]])[]> = {
      sqlite: [
        [
          [
            'drop trigger ft_hands_title_body_search_delete',
            'drop trigger ft_hands_title_body_search_insert',
            'create trigger ft_hands_title_body_search_insert after insert on ft_hands begin select 1; end',
          ],
          [
            'Trigger "ft_hands_title_body_search_insert" of full text "ft_hands_title_body_search" is different in the database.',
            'Trigger "ft_hands_title_body_search_delete" of full text "ft_hands_title_body_search" is missing from the database.',
          ],
        ],
      ],
      postgres: [
        [
          ['drop index ft_hands_title_body_search_index'],
          ['Index "ft_hands_title_body_search_index" of full text "ft_hands_title_body_search" is missing from the database.'],
        ],
        [
          [
            'alter table ft_hands drop column ft_hands_title_body_search',
            `alter table ft_hands add column ft_hands_title_body_search tsvector generated always as (to_tsvector('simple'::regconfig, title)) stored`,
            'create index ft_hands_title_body_search_index on ft_hands using gin (ft_hands_title_body_search)',
          ],
          ['Column "ft_hands.ft_hands_title_body_search" of full text is generated otherwise in the database.'],
        ],
        [
          ['alter table ft_hands drop column ft_hands_title_body_search'],
          ['Column "ft_hands.ft_hands_title_body_search" of full text is missing from the database.'],
        ],
      ],
    };
    for (const [statements, faults] of steps[db.dialect]) {
      for (const statement of statements) await db.query(statement);
      expect(await drift()).toEqual(faults);
    }
  });

  test('dropFullText and createFullText mend what was removed by hand', async () => {
    const { db } = database;
    const name = 'ft_mended_title_body_search';
    const first = migration('0001_a', [createTable('ft_mended', columns, { fullText })]);
    const second = migration('0002_b', [dropFullText('ft_mended', name), createFullText('ft_mended', { columns: ['title', 'body'] })]);
    const mended = (...migrations: Migration[]) => [{ name: 'ft_mended', migrations }];
    await migrate(db, mended(first));
    await db.query(`insert into ft_mended (id, title, body) values (1, 'Tea', 'green')`);
    const removal: Record<Dialect, readonly string[]> = {
      sqlite: [`drop trigger ${name}_insert`, `drop table ${name}`],
      postgres: [`alter table ft_mended drop column ${name}`],
    };
    for (const statement of removal[db.dialect]) await db.query(statement);
    await migrate(db, mended(first, second));
    expect((await checkDrift(mended(first, second), db)).database).toEqual([]);
    expect(await found(db, model('ft_mended', columns, { fullText }), 'tea')).toHaveLength(1);
  });

  test('a text of any length and content can be stored, and INSERT OR REPLACE leaves nothing behind', async () => {
    const { db } = database;
    const long = model('ft_long', columns, { fullText });
    await migrate(db, [{ name: 'ft_long', migrations: [migration('0001_a', [createTable('ft_long', columns, { fullText })])] }]);
    const random = Array.from({ length: 110_000 }, (_, index) => String.fromCodePoint(0x20_000 + (index % 40_000))).join(' ');
    const bodies = [
      'x'.repeat(3000),
      random,
      Array.from({ length: 130_000 }, (_, index) => index.toString(36)).join(' '),
      `' " \\ :* & | ! ( ) <-> \u{1f600}`,
    ];
    for (const [index, body] of bodies.entries())
      await db.query('insert into ft_long (id, title, body) values ($1, $2, $3)', [index, `row${index}`, body]);
    expect(await found(db, long, 'row2 1a')).toEqual([2]);
    const replace =
      db.dialect === 'sqlite'
        ? [`insert or replace into ft_long (id, title) values (2, 'other')`]
        : ['delete from ft_long where id = 2', `insert into ft_long (id, title) values (2, 'other')`];
    for (const statement of replace) await db.query(statement);
    expect([await found(db, long, 'row2'), await found(db, long, 'other')]).toEqual([[], [2]]);
    const kept = db.dialect === 'sqlite' ? 'ft_long_title_body_search_rows' : 'ft_long';
    const [counts] = await db.query<{ kept: number }>(`select cast(count(*) as integer) as kept from ${kept}`);
    expect(counts?.kept).toBe(4);
  });
});
