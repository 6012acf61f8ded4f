import { describeOutdated, driftOf, driftRemedy, outdatedDatabases } from '../../app/migration-modules.ts';
import type { App } from '../../app/module.ts';
import { unboundedLists } from '../../app/unbounded-lists.ts';
import { listWarnings } from '../../crud/inspect/list-warnings.ts';
import type { Fault } from '../../options/fault.ts';
import type { CliContext } from '../context.ts';
import type { CoreCommand } from '../core-command.ts';
import { explainFailure } from '../explain-failure.ts';
import { missingConfig } from '../find-config.ts';
import { moduleFaults } from '../module-faults.ts';

interface Finding {
  readonly subject: string;
  readonly state: 'ok' | 'warning' | 'fault';
  readonly detail: string;
}

/** Current when this version of kit was released; 26 is tested too. */
const NODE_TESTED = [22, 24, 26];

export const doctorCommand: CoreCommand = {
  name: 'doctor',
  summary: 'look for what keeps the app from running well, and say what to do',
  configure(command, context) {
    command.addHelpText('after', '\nExit code 1 when something is broken; warnings alone give 0.').action(async () => {
      const findings = await examine(context);
      const broken = findings.some(({ state }) => state === 'fault');
      if (context.json) context.print(JSON.stringify({ ok: !broken, findings }, null, 2));
      else for (const finding of findings) context.print(line(finding, context));
      if (broken) context.fail(`${findings.filter(({ state }) => state === 'fault').length} of ${findings.length} checks failed.`);
    });
  },
};

async function examine(context: CliContext): Promise<Finding[]> {
  const findings = [nodeVersion()];
  if (context.configFile === null)
    return [...findings, { subject: 'config', state: 'fault', detail: missingConfig(process.cwd()).replaceAll('\n', ' ') }];
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
  findings.push(...throttles(opened.value));
  return [...findings, ...(await databases(opened.value)), ...(await moduleChecks(opened.value)), ...(await lists(opened.value))];
}

/** What throttles count wrongly in a deployment of several clients behind one proxy, or of several processes. */
function throttles(app: App): Finding[] {
  const used = app.routes.flatMap((route) => route.throttles);
  const countsAddresses = used.some(({ phase }) => phase === 'client') || app.modules.some(({ name }) => name === 'apikeys');
  return [
    ...(countsAddresses && app.settings.trustedProxies === undefined
      ? [
          {
            subject: 'proxies',
            state: 'warning',
            detail:
              'Requests and invalid keys are counted by client address, and no proxy is trusted: behind a proxy all clients share one address. Set TRUSTED_PROXIES to its address, or to none where there is no proxy.',
          } as const,
        ]
      : []),
    ...(used.length > 0 && app.throttleStorage.isLocal === true && app.db.dialect === 'postgres'
      ? [
          {
            subject: 'throttles',
            state: 'warning',
            detail:
              'Each process counts requests for itself: with N processes a client gets N times its rate. Give createApp a throttleStorage that they share: sqlStorage() or redisStorage() from kit/throttle.',
          } as const,
        ]
      : []),
  ];
}

function nodeVersion(): Finding {
  const { node } = process.versions;
  const tested = NODE_TESTED.includes(Number(node.split('.')[0]));
  return {
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
    ...outdated.value.map((each): Finding => ({ subject, state: 'fault', detail: describeOutdated(each) })),
    ...drift.value.database.map((fault): Finding => ({
      subject: 'tables',
      // What is there besides harms nobody; what is not there fails the first statement that needs it.
      state: fault.includes(' is missing from the database') ? 'fault' : 'warning',
      detail: `${fault} ${driftRemedy(drift.value)}`,
    })),
    ...drift.value.additions.map((each): Finding => ({ subject: 'tables', state: 'ok', detail: `${each} This version works without it.` })),
  ];
}

/** Lists that read a whole table, or that have no limit. */
async function lists(app: App): Promise<Finding[]> {
  const warning = (subject: string, { id, message, hint }: Fault): Finding => ({
    subject,
    state: 'warning',
    detail: `${id} ${message} ${hint ?? ''}`,
  });
  return [
    ...(await listWarnings(app)).map(({ resource, fault }) => warning(`resource ${resource}`, fault)),
    ...unboundedLists(app.routes).map((fault) => warning('routes', fault)),
  ];
}

async function moduleChecks(app: App): Promise<Finding[]> {
  return (await moduleFaults(app)).map(({ module, fault: { id, message, hint } }) => {
    const detail = `${id} ${message}${hint === undefined ? '' : ` ${hint}`}`;
    return { subject: module, state: id.startsWith('E') ? 'fault' : 'warning', detail };
  });
}

/** The result, or the finding that says why there is none. */
async function attempt<T>(subject: string, work: () => Promise<T>): Promise<{ value: T } | { finding: Finding }> {
  try {
    return { value: await work() };
  } catch (error) {
    const detail = explainFailure(error) ?? (error instanceof Error ? error.message : String(error));
    return { finding: { subject, state: 'fault', detail } };
  }
}

function line({ subject, state, detail }: Finding, context: CliContext): string {
  const mark = {
    ok: context.paint('green', 'ok     '),
    warning: context.paint('yellow', 'warning'),
    fault: context.paint('red', 'fault  '),
  }[state];
  return `${mark} ${subject}: ${detail}`;
}
