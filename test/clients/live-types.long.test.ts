import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowAny, createApp } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t } from 'kit/db';
import { generateClient } from 'kit/openapi';
import { expect, onTestFinished, test } from 'vitest';
import { runScript } from './run-script.ts';

const TEN_MINUTES = 600_000;
const MYPY = ['/usr/bin/mypy', 'mypy'].find((each) => spawnSync(each, ['--version']).status === 0);

const notes = model('notes', {
  id: t.uuidv7().pk(),
  title: t.text(80),
  status: t.enum(['open', 'done']),
  total: t.decimal(12, 2).nullable(),
});
class NoteController extends CrudController(resource(notes, { unscoped: true }), {
  permission: allowAny,
  filters: { status: ['eq'] },
  ordering: { by: ['total'] },
  live: true,
}) {
  static override readonly tags = ['notes'];
}

test(
  'the live methods are typed: changes by their event, items by `fields`, arguments without pages',
  { timeout: TEN_MINUTES },
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'kit-live-types-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { routes } = createApp({
      database: 'sqlite::memory:',
      modules: [{ name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
      mount: { '/v1': { '/notes': NoteController } },
    });
    for (const [language, file] of [
      ['typescript', 'api.ts'],
      ['python', 'api.py'],
    ] as const)
      writeFileSync(join(folder, file), generateClient(routes, { title: 'Notes', version: '1', language }));
    writeFileSync(
      join(folder, 'use.ts'),
      `import { createClient } from './api.ts';
const client = createClient();
for await (const change of client.notes.live({ status: 'open' })) {
  if (change.event === 'upsert') { const text: string = change.item.title + change.key; void text; }
  // @ts-expect-error A removal has no item.
  if (change.event === 'remove') void change.item;
}
for await (const notes of client.notes.liveList({ fields: ['title'] })) {
  const title: string | undefined = notes[0]?.title;
  // @ts-expect-error Not among the fields.
  void notes[0]?.total;
  void title;
}
// @ts-expect-error A live list has no pages.
client.notes.live({ limit: 1 });
// @ts-expect-error No such status.
client.notes.liveList({ status: 'closed' });
`,
    );
    const compilerOptions = {
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noUnusedLocals: true,
      isolatedDeclarations: true,
      declaration: true,
      erasableSyntaxOnly: true,
      allowImportingTsExtensions: true,
      target: 'es2023',
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
      types: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['api.ts', 'use.ts'] }));
    const compiler = join(import.meta.dirname, '../../node_modules/typescript/bin/tsc');
    expect((await runScript(process.execPath, [compiler, '-p', folder], folder, {})).stdout).toBe('');

    context.skip(MYPY === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined, 'mypy is not installed');
    writeFileSync(
      join(folder, 'use.py'),
      `import api
client = api.Client("http://127.0.0.1")
for change in client.notes.live(status="open"):
    if change.event == "upsert":
        title: str = change.item.title
    elif change.event == "remove":
        change.item  # type: ignore[attr-defined]
for notes in client.notes.live_list(ordering=["-total"]):
    first: api.Note = notes[0]
client.notes.live(limit=1)  # type: ignore[call-arg]
client.notes.live_list(status="closed")  # type: ignore[arg-type]
`,
    );
    const checked = await runScript(MYPY!, ['--strict', '--warn-unused-ignores', 'use.py'], folder, {});
    expect(checked.stdout.trim()).toMatch(/^Success/);
  },
);
