import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectDefaultMetrics } from 'prom-client';
import { parse } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { PrometheusRegistry } from '../packages/kit/src/contrib/metrics/prometheus-registry.ts';
import { accounts } from '../packages/kit/src/contrib/accounts/index.ts';
import { apiKeys } from '../packages/kit/src/contrib/apikeys/index.ts';
import { audit } from '../packages/kit/src/contrib/audit/index.ts';
import { jobs } from '../packages/kit/src/contrib/jobs/index.ts';
import { metrics } from '../packages/kit/src/contrib/metrics/index.ts';
import { webhooks } from '../packages/kit/src/contrib/webhooks/index.ts';
import { allowAny, createApp } from '../packages/kit/src/index.ts';
import { root } from './docs/pages.ts';

interface Declared {
  readonly type: string;
  readonly labels: readonly string[];
}

const folder = join(root, 'deploy/monitoring');
const source = (path: string) => readFileSync(join(root, path), 'utf8');
/** Labels that Prometheus adds to what it reads. */
const ADDED = ['job', 'instance', 'le'];

/** Every metric of an application with all modules, by name. */
const declared = new Map<string, Declared>();
let own: string[] = [];
let exposition = '';

beforeAll(async () => {
  const app = createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    modules: [
      accounts(),
      apiKeys(),
      audit(),
      webhooks(),
      jobs({ jobs: [] }),
      metrics({ path: '/metrics', permission: allowAny, process: false }),
    ],
    mount: {},
  });
  const registry = app.registry.metrics as PrometheusRegistry;
  const note = (from: PrometheusRegistry) => {
    for (const metric of from.prometheus.getMetricsAsArray()) {
      const { name, labelNames = [] } = metric as unknown as { readonly name: string; readonly labelNames?: readonly string[] };
      declared.set(name, { type: (metric as unknown as { constructor: { name: string } }).constructor.name, labels: labelNames });
    }
  };
  note(registry);
  own = [...declared.keys()];
  const process = new PrometheusRegistry(() => undefined);
  collectDefaultMetrics({ register: process.prometheus });
  note(process);
  await app.inject('/nowhere');
  exposition = await registry.text();
  await app.close();
});

/** The metrics and labels that an expression names. */
function namesIn(expression: string): { readonly metrics: readonly string[]; readonly labels: readonly string[] } {
  const metricNames = [...expression.matchAll(/\b(?:http_server|db_client|kit|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);
  const selected = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) =>
    Array.from(inside.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)),
  );
  const grouped = [...expression.matchAll(/\bby\s*\(([^)]*)\)/g)].flatMap(([, inside = '']) =>
    inside.split(',').map((label) => label.trim()),
  );
  return { metrics: metricNames, labels: [...selected.map(([, label = '']) => label), ...grouped] };
}

const rules = () =>
  (parse(source('deploy/monitoring/alerts.yml')) as { groups: { rules: { alert: string; expr: string }[] }[] }).groups.flatMap(
    (group) => group.rules,
  );
interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const panels = () => (JSON.parse(source('deploy/monitoring/grafana-dashboard.json')) as { panels: Panel[] }).panels;
const expressions = () => [
  ...rules().map(({ alert, expr }) => ({ where: `alert ${alert}`, expr })),
  ...panels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: `panel ${title}`, expr }))),
];

describe('dashboard and alerts', () => {
  test('every metric they name exists, and every label is one it has', () => {
    const faults = expressions().flatMap(({ where, expr }) => {
      const { metrics: names, labels } = namesIn(expr);
      const found = names.map((name) => declared.get(name) ?? declared.get(name.replace(/_(bucket|sum|count)$/, '')));
      const unknown = names.filter((_, index) => found[index] === undefined).map((name) => `${where}: ${name}`);
      const known = new Set([...ADDED, ...found.flatMap((each) => each?.labels ?? [])]);
      return unknown.concat(labels.filter((label) => !known.has(label)).map((label) => `${where}: label ${label}`));
    });
    expect(faults).toEqual([]);
    expect(expressions().length).toBeGreaterThan(35);
  });

  test('every metric of the toolkit is shown somewhere', () => {
    const shown = expressions()
      .map(({ expr }) => expr)
      .join(' ');
    expect(own.filter((name) => !shown.includes(name))).toEqual([]);
  });

  test('every alert says how urgent it is, what happens and what to do', () => {
    for (const rule of rules()) {
      const { alert, labels, annotations } = rule as unknown as { alert: string; labels: object; annotations: object };
      expect({ alert, labels, annotations }).toMatchObject({
        labels: { severity: expect.stringMatching(/^(page|ticket)$/) as unknown },
        annotations: { summary: expect.any(String) as unknown, action: expect.any(String) as unknown },
      });
    }
  });
});

test('a job that Prometheus reads and that is gone raises an alert', () => {
  const { scrape_configs: jobs } = parse(source('deploy/monitoring/prometheus.yml')) as { scrape_configs: { job_name: string }[] };
  const missing = rules().find(({ alert }) => alert === 'ProcessesMissing')?.expr ?? '';
  expect([...missing.matchAll(/absent\(up\{job="([\w-]+)"\}\)/g)].map(([, job]) => job)).toEqual(jobs.map(({ job_name: name }) => name));
});

test('every alert fires in a test', () => {
  const { tests } = parse(source('deploy/monitoring/alerts.test.yml')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  };
  const firing = new Set(
    tests.flatMap((each) => each.alert_rule_test.filter((rule) => rule.exp_alerts.length > 0)).map((rule) => rule.alertname),
  );
  expect(
    rules()
      .filter(({ alert }) => !firing.has(alert))
      .map(({ alert }) => alert),
  ).toEqual([]);
});

test('the reference page lists every metric of the toolkit', () => {
  const page = source('docs/reference/metrics.md');
  const listed = (name: string) => page.includes(`\`${name}\``) || page.includes(`\`…${name.slice(name.lastIndexOf('_'))}\``);
  expect(own.filter((name) => !listed(name))).toEqual([]);
});

// Debian's package `prometheus` has it; `.ci/run` installs it.
const promtool = (...args: string[]) => spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
const hasPromtool = promtool('--version').status === 0;

describe.skipIf(!hasPromtool)('promtool (skipped where it is not installed: Debian package prometheus)', () => {
  test('accepts the configuration and the rules', () => {
    expect(promtool('check', 'config', 'prometheus.yml')).toMatchObject({ status: 0 });
    expect(promtool('check', 'rules', 'alerts.yml')).toMatchObject({ status: 0 });
  });

  test('sees the alerts fire when they must, and not while all is well', () => {
    const result = promtool('test', 'rules', 'alerts.test.yml');
    expect(`${result.stdout}${result.stderr}`).toContain('SUCCESS');
    expect(result.status).toBe(0);
  });

  test('finds nothing wrong with what is served', () => {
    const result = spawnSync('promtool', ['check', 'metrics'], { input: exposition, encoding: 'utf8' });
    expect([result.status, result.stdout, result.stderr]).toEqual([0, '', '']);
  });
});
