import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { describe, expect, test } from 'vitest';
import { codeBlocks, pages, root } from './docs/pages.ts';
import { isRun, walkPage, type Preparation } from './docs/walk-page.ts';
import { scaled } from './provision/scale.ts';

const HAS_AGE = spawnSync('age', ['--version']).status === 0;
const password = (): string => 'a long and odd one 7\n';
const sqlite = { DATABASE_URL: 'sqlite:./data/app.db' };

// An event as it was stored before audiences existed.
const OLD_EVENT =
  "insert into webhook_events (id, type, data, timestamp) values ('0198c0de-0000-7000-8000-000000000000', 'order.created', '{}', '2025-08-19T12:00:00.000Z')";

// Pages that stand on what another one did. A page that is not named here begins in an empty folder.
const preparations: Readonly<Record<string, Preparation>> = {
  'docs/guide/accounts.md': { input: { 'user create ada': password } },
  'docs/guide/admin.md': { input: { 'user create-superuser ada': password } },
  'docs/guide/webhooks.md': {
    input: { 'webhooks listen': (printed) => `${/whsec_[\w+/=]+/.exec(printed)?.[0]}\n` },
    finally: { 'webhooks listen': /verified msg_\S+ \{"type":"order\.created"/ },
  },
  'docs/guide/webhooks-operating.md': {
    after: 'docs/guide/webhooks.md',
    before: `kit migrate
export WEBHOOK_SECRET_KEYS=$(kit webhooks generate-key | tail -n 1)
node -e 'new (require("node:sqlite").DatabaseSync)("data/app.db").exec(process.argv[1])' "${OLD_EVENT}"`,
  },
  'docs/guide/zero-to-deployed.md': { before: `node '${join(root, 'test/docs/new-project.ts')}' full helpdesk` },
  'docs/reference/accounts.md': {
    before: 'kit migrate; PASSWORD="a long and odd one 7"',
    input: { 'user create ada': password },
  },
  'docs/reference/apikeys.md': {
    before: `kit migrate
kit user create ada --no-password
PREFIX=$(kit apikey create --user ada --name first --scope orders:read | tail -n 1 | cut -d_ -f2)`,
    environment: sqlite,
  },
  'docs/reference/audit.md': {
    before: `kit migrate
kit user create ada --no-password
NOTED=$(kit audit verify | grep -oE '[0-9]+:[0-9a-f]{64}')`,
    environment: sqlite,
  },
  'docs/reference/cli.md': { after: 'docs/guide/accounts.md' },
  'examples/config-server/README.md': { files: 'examples/config-server' },
};

const walked = pages().filter((page) => codeBlocks(page).some(isRun));
/** What people read first, and one page of each program: 64 s of a run are 15. */
const short = ['docs/guide/first-api.md', 'docs/guide/zero-to-deployed.md', 'docs/guide/config-server.md', 'docs/guide/webhooks.md'];

// Most of the time is starting programs one after another, so pages take turns.
describe.concurrent('the commands of a page work as they are written, in their order', () => {
  test.for(scaled(0, 1) === 1 ? walked : short)('%s', { timeout: 900_000 }, async (page, context) => {
    // On CI the program is installed; elsewhere the page says how.
    const needsAge = codeBlocks(page).some((block) => isRun(block) && /^age/m.test(block.text));
    context.skip(needsAge && !HAS_AGE && process.env['KIT_REQUIRE_AGE'] === undefined, 'the program age is not installed');
    context.expect(await walkPage(page, preparations[page] ?? {}, context)).toBe(codeBlocks(page).filter(isRun).length);
  });
});

test('only pages with commands are prepared', () => {
  expect([...Object.keys(preparations), ...short].filter((page) => !walked.includes(page))).toEqual([]);
});
