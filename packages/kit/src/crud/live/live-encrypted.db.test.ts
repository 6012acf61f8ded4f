import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Follower } from '../../../test/crud/live.ts';
import { byName, type Person } from '../../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { isAuthenticated, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { CrudController, resource, visibleTo } from '../index.ts';

const MARKER = 'a diagnosis that nobody may read';
const cases = model('cases', {
  id: t.uuidv7().pk(),
  title: t.text(80),
  diagnosis: t.text(200).encrypted(),
  policy: t.text(40).nullable().encrypted({ search: 'equality' }),
});
const caseResource = resource(cases, { unscoped: true, fields: { diagnosis: visibleTo(isStaff), policy: visibleTo(isStaff) } });
class CaseController extends CrudController(caseResource, { permission: isAuthenticated, filters: { title: ['eq'] }, live: true }) {}

describeDatabases('a live list with encrypted columns', (database) => {
  let kit: TestApp;
  let url: string;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byName],
      modules: [{ name: 'cases', models: [cases], migrations: [migration('0001_cases', [createTable('cases', cases.columns)])] }],
      mount: { '/v1': { '/cases': CaseController } },
    });
    url = `${await kit.listen()}/v1/cases`;
  });
  afterAll(() => kit?.close());

  async function follow(person: Person): Promise<Follower> {
    const follower = await new Follower(person, '').connect(url);
    onTestFinished(() => follower.disconnect());
    await vi.waitFor(() => expect(follower.batches).toBe(1), { timeout: 30_000 });
    return follower;
  }

  test('shows plaintext to those who see the column, and keeps neither it nor a ciphertext or search value in the change log', async () => {
    const [ann, sue] = [await follow('ann'), await follow('sue')];
    const request = (method: 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object) =>
      kit.inject({ method, url: `/v1/cases${path}`, headers: { 'x-user': 'sue' }, ...(payload === undefined ? {} : { payload }) });
    const made = await request('POST', '', { title: 'one', diagnosis: MARKER, policy: 'A 1' });
    expect([made.statusCode, made.body]).toEqual([201, expect.stringContaining(MARKER)]);
    const { id } = made.json<{ id: string }>();
    expect((await request('PATCH', `/${id}`, { diagnosis: `${MARKER}, again` })).statusCode).toBe(200);
    await vi.waitFor(() => expect(sue.rows.get(id)).toMatchObject({ diagnosis: `${MARKER}, again`, policy: 'A 1' }), { timeout: 30_000 });
    expect((await request('DELETE', `/${id}`)).statusCode).toBe(204);
    await vi.waitFor(() => expect([ann.rows.has(id), sue.rows.has(id)]).toEqual([false, false]), { timeout: 30_000 });
    expect(JSON.stringify(ann.log)).not.toMatch(/diagnosis|policy/);
    // Nor does she hear when the column was changed.
    expect(ann.log.map(({ event }) => event).filter((event) => event !== 'ready')).toEqual(['upsert', 'remove']);
    const logged = await database.db.query<{ prior: string | object | null }>('select prior from kit_changes order by position');
    const priors = logged.flatMap(({ prior }) =>
      prior === null ? [] : [typeof prior === 'string' ? (JSON.parse(prior) as object) : prior],
    );
    const said = (isNote: boolean) =>
      priors.map((prior) => Object.fromEntries(Object.entries(prior).filter(([name]) => name.startsWith('~') === isNote)));
    expect(said(false)).toEqual([
      { id, title: 'one' },
      { id, title: 'one' },
    ]);
    // Of the others, only whether they changed.
    expect(said(true)).toMatchObject([{ '~diagnosis': 'true', '~policy': 'false' }, {}]);
    expect(new Set(said(true).flatMap((notes) => Object.values(notes)))).toEqual(new Set(['true', 'false']));
  });
});
