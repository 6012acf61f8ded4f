import { dirname } from 'node:path';
import { Option } from 'commander';
import { describeOutdated, driftOf, driftRemedy, outdatedDatabases } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/declare/module.ts';
import { personalWarnings } from '../../crud/subjects/personal-warnings.ts';
import { modelWarnings } from '../../app/check/model-warnings.ts';
import { openWrites } from '../../app/check/open-writes.ts';
import { proxyWarning, shutdownWarning } from '../../app/check/proxy-warning.ts';
import { repeatedStatements } from '../../app/check/repeated-statements.ts';
import { isSilenced } from '../../app/check/silenced-checks.ts';
import { describeServer, serverWarnings } from '../../app/check/server-warnings.ts';
import { unboundedLists } from '../../app/check/unbounded-lists.ts';
import { listWarnings } from '../../crud/inspect/list-warnings.ts';
import { longRoutes } from '../../crud/inspect/long-routes.ts';
import { scopeWarnings } from '../../crud/inspect/scope-warnings.ts';
import { engineOf } from '../../db/engine/handle.ts';
import type { Fault } from '../../options/fault.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { explainFailure } from '../terminal/explain-failure.ts';
import { missingConfig } from '../load/find-config.ts';
import { moduleFaults } from '../load/module-faults.ts';
import { sarifLog } from '../terminal/sarif.ts';

interface Finding {
  /** The rule; `kit explain` explains each. Absent where everything is well. */
  readonly id?: string;
  readonly subject: string;
  readonly state: 'ok' | 'warning' | 'fault' | 'silenced';
  readonly detail: string;
}

/** Current when this version of kit was released; 26 is tested too. */
const NODE_TESTED = [22, 24, 26];

/** Warnings of the start that are found here in another way: by the size of the tables, and also outside production. */
const EXAMINED: ReadonlySet<string> = new Set(['W008', 'W014']);

const FORMATS = ['table', 'json', 'sarif'] as const;
const LEVELS = ['fault', 'warn'] as const;

interface DoctorOptions {
  readonly database?: boolean;
  readonly failOn: (typeof LEVELS)[number];
  readonly format?: (typeof FORMATS)[number];
}

export const doctorCommand: CoreCommand = (command, context) => {
  command
    .addOption(new Option('--fail-on <level>', 'exit with 1 on a fault, or on a warning, too').choices(LEVELS).default('fault'))
    .addOption(new Option('--format <format>', 'how to print the findings (default: table; --json is json)').choices(FORMATS))
    .option(
      '--database',
      'also ask PostgreSQL about replicas, poolers, limits and connections, and count the rows that requests can read: routes that can read more than 100,000, with plan and index',
    )
    .addHelpText('after', HELP)
    .action(async ({ failOn, database = false, format = context.json ? 'json' : 'table' }: DoctorOptions) => {
      const findings = await examine(context, database);
      const bad = findings.filter(({ state }) => state === 'fault' || (failOn === 'warn' && state === 'warning'));
      if (format === 'json') context.print(JSON.stringify({ ok: bad.length === 0, findings }, null, 2));
      else if (format === 'sarif') context.print(JSON.stringify(sarifLog(findings), null, 2));
      else for (const finding of findings) context.print(line(finding, context));
      if (bad.length > 0) context.fail(`${bad.length} of ${findings.length} checks failed.`);
    });
};

const HELP = `
Exit code 1 when something is broken; warnings alone give 0, unless --fail-on warn. kit explain explains every id. A warning that is right for your
app is silenced with a reason: createApp({ silencedChecks: { W008: 'the table has 200 rows' } }).`;

async function examine(context: CliContext, countsRows: boolean): Promise<Finding[]> {
  const findings = await found(context, countsRows);
  const app = await context.bareApp().catch(() => undefined);
  return findings.map((finding) => (app === undefined ? finding : silenced(app, finding)));
}

function silenced(app: App, finding: Finding): Finding {
  const reason = finding.state === 'warning' ? isSilenced(app, finding.id) : undefined;
  return reason === undefined ? finding : { ...finding, state: 'silenced', detail: `${finding.detail} Silenced: ${reason}` };
}

async function found(context: CliContext, countsRows: boolean): Promise<Finding[]> {
  const findings = [nodeVersion(process.versions.node)];
  if (context.configFile === null)
    return [...findings, { id: 'E025', subject: 'config', state: 'fault', detail: missingConfig(process.cwd()).replaceAll('\n', ' ') }];
  const loaded = await attempt('config', () => context.bareApp());
  if ('finding' in loaded) return [...findings, loaded.finding];
  findings.push({ subject: 'config', state: 'ok', detail: context.configFile });
  const opened = await attempt('start-up', async () => {
    // To look at an app must not leave an empty database where its address is misspelt.
    await loaded.value.openDatabases({ createFiles: false });
    return context.app();
  });
  if ('finding' in opened) return [...findings, opened.finding];
  findings.push({
    subject: 'start-up',
    state: 'ok',
    detail: `${opened.value.routes.length} routes, ${opened.value.modules.length} ${opened.value.modules.length === 1 ? 'module' : 'modules'}`,
  });
  findings.push(...throttleFindings(opened.value), ...shutdownWarning(opened.value).map((fault) => warning('proxies', fault)));
  return [
    ...findings,
    ...(await databases(opened.value)),
    ...opened.value.warnings.filter(({ id }) => !EXAMINED.has(id)).map((fault) => warning('app', fault)),
    ...(await moduleChecks(opened.value)),
    ...(await lists(opened.value)),
    ...(countsRows ? [...(await servers(opened.value)), ...(await readRows(opened.value))] : []),
    ...repeatedStatements(dirname(context.configFile), opened.value.routes).map((fault) => warning('tests', fault)),
  ];
}

interface ThrottledApp extends Pick<App, 'routes' | 'modules' | 'settings' | 'throttleStorage'> {
  readonly db: Pick<App['db'], 'dialect'>;
}

/** What throttles count wrongly in a deployment of several clients behind one proxy, or of several processes. */
export function throttleFindings(app: ThrottledApp): Finding[] {
  const used = app.routes.flatMap((route) => route.throttles);
  return [
    ...proxyWarning(app).map((fault) => warning('proxies', fault)),
    ...(used.length > 0 && app.throttleStorage.isLocal === true && app.db.dialect === 'postgres'
      ? [
          {
            id: 'W015',
            subject: 'throttles',
            state: 'warning',
            detail:
              'Each process counts requests for itself: with N processes a client gets N times its rate. Give createApp a throttleStorage that they share: sqlStorage() or redisStorage() from kit/throttle.',
          } as const,
        ]
      : []),
  ];
}

export function nodeVersion(node: string): Finding {
  const tested = NODE_TESTED.includes(Number(node.split('.')[0]));
  return {
    ...(tested ? {} : { id: 'W016' }),
    subject: 'node',
    state: tested ? 'ok' : 'warning',
    detail: tested ? node : `${node} is not among the tested releases ${NODE_TESTED.join(', ')}.`,
  };
}

async function databases(app: App): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [name, database] of Object.entries(app.databases)) {
    const started = performance.now();
    const reached = await attempt(`database ${name}`, () => database.query('select 1 as one'));
    if ('finding' in reached) {
      findings.push(reached.finding);
      continue;
    }
    findings.push({
      subject: `database ${name}`,
      state: 'ok',
      detail: `${database.url} answers in ${Math.ceil(performance.now() - started)} ms`,
    });
    const pooler = await attempt(`database ${name}`, async () => (await engineOf(database).losesStatements?.()) === true);
    if ('finding' in pooler) findings.push(pooler.finding);
    else if (pooler.value) {
      findings.push({
        id: 'W029',
        subject: `database ${name}`,
        state: 'warning',
        detail:
          'A pooler between the app and PostgreSQL loses prepared statements: statements will fail now and then. Set DATABASE_PREPARE=off.',
      });
    }
  }
  return [...findings, ...(await migrations(app))];
}

/** What no start-up check sees: tables that do not match the migrations which were applied to them. */
async function migrations(app: App): Promise<Finding[]> {
  const subject = 'migrations';
  const outdated = await attempt(subject, () => outdatedDatabases(app));
  if ('finding' in outdated) return [outdated.finding];
  const drift = await attempt('tables', () => driftOf(app));
  if ('finding' in drift) return [drift.finding];
  return [
    ...(outdated.value.length === 0 ? [{ subject, state: 'ok', detail: 'all applied' } as const] : []),
    ...outdated.value.map((each): Finding => ({ id: 'E026', subject, state: 'fault', detail: describeOutdated(each) })),
    ...drift.value.database.map((fault): Finding => ({
      id: 'W017',
      subject: 'tables',
      // What is there besides harms nobody; what is not there fails the first statement that needs it.
      state: fault.includes(' is missing from the database') ? 'fault' : 'warning',
      detail: `${fault} ${driftRemedy(drift.value)}`,
    })),
    ...drift.value.additions.map((each): Finding => ({ subject: 'tables', state: 'ok', detail: `${each} This version works without it.` })),
  ];
}

function warning(subject: string, { id, message, hint }: Fault): Finding {
  return {
    id,
    subject,
    state: id.startsWith('E') ? 'fault' : 'warning',
    detail: `${id} ${message}${hint === undefined ? '' : ` ${hint}`}`,
  };
}

/** Lists that read a whole table or have no limit, resources whose rows belong to nobody, and models that cannot work as they look. */
async function lists(app: App): Promise<Finding[]> {
  return [
    ...(await listWarnings(app)).map(({ resource, fault }) => warning(`resource ${resource}`, fault)),
    ...[...unboundedLists(app.routes), ...openWrites(app.routes)].map((fault) => warning('routes', fault)),
    ...scopeWarnings(app).map(({ resource, fault }) => warning(`resource ${resource}`, fault)),
    ...[...modelWarnings(app), ...personalWarnings(app)].map((fault) => warning('models', fault)),
  ];
}

/** What the servers of the databases are like, and what an app would miss there in an incident. */
async function servers(app: App): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [name, database] of Object.entries(app.databases)) {
    const subject = `database ${name}`;
    const found = await attempt(subject, async () => engineOf(database).serverFacts?.());
    if ('finding' in found) findings.push(found.finding);
    else if (found.value !== undefined) {
      const { server, keepAliveMs } = found.value;
      const own = { poolMax: database.pool.max, keepAliveMs };
      findings.push({ subject, state: 'ok', detail: describeServer(server, own) });
      findings.push(...serverWarnings(name, server, own).map((fault) => warning(subject, fault)));
    }
  }
  return findings;
}

async function readRows(app: App): Promise<Finding[]> {
  const found = await attempt('routes', () => longRoutes(app));
  if ('finding' in found) return [found.finding];
  return found.value.map(({ resource, fault }) => warning(`resource ${resource}`, fault));
}

async function moduleChecks(app: App): Promise<Finding[]> {
  return (await moduleFaults(app)).map(({ module, fault }) => warning(module, fault));
}

/** The result, or the finding that says why there is none. */
async function attempt<T>(subject: string, work: () => Promise<T>): Promise<{ value: T } | { finding: Finding }> {
  try {
    return { value: await work() };
  } catch (error) {
    const detail = explainFailure(error) ?? (error instanceof Error ? error.message : String(error));
    return { finding: { id: 'E025', subject, state: 'fault', detail } };
  }
}

function line({ id, subject, state, detail }: Finding, context: CliContext): string {
  const mark = {
    ok: context.paint('green', 'ok     '),
    warning: context.paint('yellow', 'warning'),
    fault: context.paint('red', 'fault  '),
    silenced: context.paint('dim', 'silenced'),
  }[state];
  return `${mark} ${subject}: ${id === undefined || detail.startsWith(id) ? detail : `${id} ${detail}`}`;
}
