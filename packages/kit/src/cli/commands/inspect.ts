import { appBackfills } from '../../app/data/app-backfills.ts';
import { describeOutdated, migrationModules, outdatedDatabases } from '../../app/data/migration-modules.ts';
import { describeData, type TableData } from '../../crud/subjects/describe-data.ts';
import { describeResources, type ResourceDescription } from '../../crud/inspect/describe-resource.ts';
import type { App } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import type { MountedResource } from '../../crud/mount/mounted-resource.ts';
import type { Policy } from '../../crud/policy/policy.ts';
import { mountedResourceOf } from '../../crud/serve/controller.ts';
import { crudOf } from '../../crud/serve/crud-of.ts';
import type { BackfillProgress } from '../../db/backfills/progress.ts';
import { type DeclaredBackfill, declaredBackfills } from '../../db/rollout/declared-backfills.ts';
import { observeQueries } from '../../db/engine/query-observer.ts';
import type { CompiledRoute, ResponseFacts } from '../../http/exchange/compiled-route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { InputLimits } from '../../options/input-limits.ts';
import { fixedRate } from '../../throttle/fixed-rate.ts';
import { formatRate, type Rate } from '../../throttle/rate.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { cacheText, resourceTree, versionsText } from '../load/resource-tree.ts';
import { toolkitTables } from '../load/toolkit-tables.ts';
import { table, tree } from '../terminal/terminal.ts';

export const inspectCommand: CoreCommand = (command, context) => {
  command
    .argument('[text]', 'a resource or its table, or a part of a path, operation or controller')
    .option('--sql', 'of a resource: also the SQL that reads the rows of a caller; opens the database')
    .addHelpText('after', '\nReads the route table; without --sql no database is opened.')
    .action(async (text: string | undefined, { sql = false }: { sql?: boolean }) => {
      const app = await context.bareApp();
      const described = describeResources(app);
      const resources = described.filter(({ resource, table: name }) => text === resource || text === name);
      if (sql && resources.length === 0) context.fail(noResource(text, ownFirst(app, described)));
      if (resources.length > 0) {
        if (sql) await app.openDatabases({ createFiles: false });
        const backfills = await backfillsOf(app, resources[0]?.table ?? '', sql);
        // A back-fill is looked at while a migration waits for it: the rest is shown without the SQL of tables that are not as the code says.
        const outdated = sql ? (await outdatedDatabases(app)).map(describeOutdated) : [];
        const statements = sql && outdated.length === 0 ? await listStatements(await context.app(), text ?? '') : [];
        const data = describeData(app).find((each) => each.table === resources[0]?.table);
        if (context.json) {
          const shown = sql ? { sql: outdated.length === 0 ? statements : null } : {};
          context.print(
            JSON.stringify(
              resources.map((each) => ({ ...each, data: data ?? null, backfills, ...shown })),
              null,
              2,
            ),
          );
        } else
          for (const each of resources) {
            const [head = '', ...lines] = tree(resourceTree(each, statements, backfills.map(backfillText), dataTexts(data)));
            context.print([context.paint('bold', head), ...lines].join('\n'));
          }
        if (outdated.length > 0) context.fail(`The SQL is not shown.\n${outdated.join('\n')}`);
        return;
      }
      const routes = app.routes.filter((route) => text === undefined || searchable(route).includes(text.toLowerCase()));
      if (context.json) return context.print(JSON.stringify(routes.map(asJson), null, 2));
      if (routes.length === 0) return context.print(text === undefined ? 'The app has no routes.' : noRoute(text, app.routes, described));
      const [head = '', ...lines] = routeTable(routes);
      context.print(context.paint('bold', head));
      for (const line of lines) context.print(line);
      context.print(context.paint('dim', `${routes.length} ${routes.length === 1 ? 'route' : 'routes'}`));
      if (text === undefined) context.print(context.paint('dim', limits(app.inputLimits)));
    });
};

/** What the models say about the data of the table. */
function dataTexts(data: TableData | undefined): string[] {
  if (data === undefined) return [];
  const { encrypted, personal, person, tenant, retention } = data;
  return [
    ...(encrypted.length === 0
      ? []
      : [`encrypted: ${encrypted.map(({ column, search }) => (search ? `${column} (found by equality)` : column)).join(', ')}`]),
    ...(personal.length === 0 ? [] : [`personal: ${personal.join(', ')}`]),
    ...(person.length === 0 ? [] : [`of a person, by ${person.join(', ')}`]),
    ...(tenant.length === 0 ? [] : [`of a tenant, by ${tenant.join(', ')}`]),
    ...(retention === null ? [] : [`retention: ${retention}`]),
  ];
}

interface InspectedBackfill {
  readonly id: string;
  readonly required_by: readonly string[];
  /** Without a database: null. */
  readonly progress: string | null;
}

/** The back-fills of a table; with their progress where the databases are open. */
async function backfillsOf(app: App, table: string, isOpen: boolean): Promise<InspectedBackfill[]> {
  const isOf = ({ backfill }: DeclaredBackfill): boolean => backfill.model.name === table;
  if (!isOpen)
    return declaredBackfills(migrationModules(app))
      .filter(isOf)
      .map(({ id, requiredBy }) => ({ id, required_by: requiredBy, progress: null }));
  const open = (await appBackfills(app)).filter(isOf);
  return open.map(({ label, requiredBy, progress }) => ({ id: label, required_by: requiredBy, progress: progressText(progress) }));
}

function progressText({ state, share }: BackfillProgress): string {
  return state === 'not started' ? state : `${state}, ${Math.floor(share * 100)} %`;
}

function backfillText({ id, required_by: requiredBy, progress }: InspectedBackfill): string {
  return `${id}${progress === null ? '' : `: ${progress}`}${requiredBy.length === 0 ? '' : `, required by ${requiredBy.join(', ')}`}`;
}

function noRoute(text: string, routes: readonly CompiledRoute[], resources: readonly ResourceDescription[]): string {
  const parts = new Set(routes.flatMap(({ path }) => path.split('/').filter((part) => !part.startsWith(':'))));
  const controllers = new Set(routes.map(({ controller }) => controller));
  // One kind after the other: a hint is only given among few names.
  const hint = [resourceNames(resources), [...parts], [...controllers], routes.map(({ operationId }) => operationId)]
    .map((names) => didYouMean(text, names))
    .find((found) => found !== '');
  return `No route matches ${JSON.stringify(text)}.${hint ?? ''}`;
}

function noResource(text: string | undefined, resources: readonly ResourceDescription[]): string {
  const names = resourceNames(resources);
  if (names.length === 0) return '--sql is for a resource; the app has none.';
  if (text === undefined) return `--sql is for one resource: kit inspect ${names[0]} --sql.`;
  return `There is no resource ${JSON.stringify(text)}.${didYouMean(text, names) || ` Known: ${names.join(', ')}.`}`;
}

/** Resources of the application before those of the toolkit's modules. */
function ownFirst(app: App, resources: readonly ResourceDescription[]): ResourceDescription[] {
  const tables = toolkitTables(app);
  return resources.toSorted((a, b) => Number(tables.has(a.table)) - Number(tables.has(b.table)));
}

function resourceNames(resources: readonly ResourceDescription[]): string[] {
  return [...new Set(resources.flatMap(({ table: name, resource }) => [name, resource]))];
}

function limits(app: InputLimits): string {
  return [
    `Limits of a request: body ${app.bodyBytes} bytes, JSON ${app.jsonDepth} levels, ${app.jsonMembers} members and ${app.jsonItems} array items, URL ${app.urlLength} characters, path parameter ${app.pathParameterLength}; ${app.requestMs / 1000} s to arrive; ${app.errors} errors in a response.`,
    `A body that is not JSON may take longer: its client is cut when it sends nothing for ${app.bodyIdleMs / 1000} s, or less than ${app.bodyBytesPerSecond} bytes per second.`,
    `Limits of a caller: ${app.streamsPerCaller} event streams and ${app.exportsPerCaller} exports per process, ${app.idempotencyRecords} idempotency records.`,
    `Exports and other streamed queries use ${app.cursorsPercent} % of the connections of a database. A client is cut that takes nothing of a response for ${app.clientIdleMs / 1000} s, or less than ${app.clientBytesPerSecond} bytes per second of an export.`,
    `Reads that can take long use ${app.callerPercent} % of the connections for one caller, and ${app.callerWaiting} of them wait. They have ${app.statementMs / 1000} s; a batch of an export has ${app.exportBatchMs / 1000} s.`,
  ].join('\n');
}

/** What the database is sent for the rows of a caller: by the rules of the policy, as a user and tenant that have none. */
async function listStatements(app: App, name: string): Promise<string[]> {
  const statements: string[] = [];
  const nobody = '00000000-0000-7000-8000-000000000000';
  const user: User = { id: nobody, username: nobody, email: null, is_active: true, is_staff: false, is_superuser: false };
  const callers = new Map<Policy, MountedResource>();
  for (const controller of app.controllers) {
    const mounted = mountedResourceOf(controller);
    if (mounted !== undefined && [mounted.policy.name, mounted.policy.model.name].includes(name)) callers.set(mounted.policy, mounted);
  }
  for (const { resource, audience } of callers.values()) {
    const reached = crudOf(app, resource).as({ user, tenant: nobody, ...(audience === null ? {} : { audience }) });
    await observeQueries(
      ({ sql }) => void statements.push(sql),
      () => reached.rows({}, 1),
    );
  }
  return statements;
}

function searchable(route: CompiledRoute): string {
  return `${route.method} ${route.path} ${route.operationId} ${route.controller}`.toLowerCase();
}

/** Versions and cache have columns where some route has them. */
function routeTable(routes: readonly CompiledRoute[]): string[] {
  const facts = (['versions', 'cache'] as const).filter((name) => routes.some(({ responseFacts }) => responseFacts[name] !== undefined));
  const heads = ['METHOD', 'PATH', 'OPERATION', 'PERMISSION', 'SCOPE', 'AUTH', 'THROTTLES', ...facts.map((name) => name.toUpperCase())];
  return table(
    heads,
    routes.map((route) => [...asRow(route), ...facts.map((name) => FACTS[name](route.responseFacts) ?? '-')]),
  );
}

const FACTS = { versions: versionsText, cache: cacheText } as const;

function asRow(route: CompiledRoute): string[] {
  return [
    route.method,
    route.path,
    route.operationId,
    route.permission.name,
    route.scope ?? '-',
    route.authenticators.map(({ name }) => name).join(', ') || '-',
    route.throttles.map(({ name }) => name).join(', ') || '-',
  ];
}

function asJson(route: CompiledRoute): object {
  return {
    method: route.method,
    path: route.path,
    operation_id: route.operationId,
    controller: route.controller,
    permission: route.permission.name,
    scope: route.scope ?? null,
    authenticators: route.authenticators.map(({ name }) => name),
    throttles: route.throttles.map((throttle) => ({ name: throttle.name, rate: formatted(fixedRate(throttle)) })),
    response_versions: route.responseFacts.versions ?? null,
    response_cache: cacheJson(route.responseFacts),
    deprecated: route.deprecated !== false,
    stream: route.kind === 'stream',
  };
}

function cacheJson({ cache }: ResponseFacts): object | null {
  return cache === undefined ? null : { max_age_ms: cache.maxAgeMs, tags: cache.tags };
}

const formatted = (rate: Rate | null): string | null => (rate === null ? null : formatRate(rate));
