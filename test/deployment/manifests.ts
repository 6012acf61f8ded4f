import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../docs/pages.ts';

/** What a deployment example runs: where it says so, the program and its arguments, its variables, and how long it may take to stop. */
export interface DeployedProcess {
  readonly where: string;
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly stopSeconds: number | undefined;
}

interface ComposeService {
  readonly build?: object;
  readonly command?: string[];
  readonly environment?: Record<string, string>;
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: string[];
  readonly security_opt?: string[];
  readonly secrets?: string[];
  readonly healthcheck?: { readonly test: string[]; readonly timeout?: string };
}

export interface Compose {
  readonly services: Record<string, ComposeService>;
  readonly secrets: Record<string, { readonly file: string }>;
}

export interface Container {
  readonly name: string;
  readonly command: string[];
  readonly env?: { readonly name: string; readonly value?: string }[];
  readonly envFrom?: { readonly configMapRef?: { readonly name: string } }[];
  readonly securityContext: Record<string, unknown>;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
}

interface Probe {
  readonly httpGet: { readonly path: string };
  readonly timeoutSeconds?: number;
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: Record<string, unknown>;
  readonly containers: Container[];
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name?: string };
  readonly data?: Record<string, string>;
  readonly spec?: { readonly template?: { spec: PodSpec }; readonly jobTemplate?: { spec: { template: { spec: PodSpec } } } };
}

const text = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The documents of a YAML file; a fault in it throws. */
export function documents(path: string): unknown[] {
  return parseAllDocuments(text(path), { merge: true, version: '1.1' }).map((document) => {
    const [fault] = [...document.errors, ...document.warnings];
    if (fault !== undefined) throw new Error(`${path}: ${fault.message}`);
    return document.toJS() as unknown;
  });
}

export const compose = (): Compose => documents('deploy/docker/compose.yaml')[0] as Compose;

export function resources(): Resource[] {
  return globSync('deploy/kubernetes/*.yaml', { cwd: root })
    .sort()
    .flatMap((path) => documents(path) as Resource[]);
}

export function pods(): { readonly where: string; readonly spec: PodSpec }[] {
  return resources().flatMap(({ kind, metadata, spec }) => {
    const pod = spec?.template?.spec ?? spec?.jobTemplate?.spec.template.spec;
    return pod === undefined ? [] : [{ where: `kubernetes ${kind} ${metadata.name ?? ''}`, spec: pod }];
  });
}

/** A unit's lines as [section, key, value]. */
export function unitLines(path: string): [section: string, key: string, value: string][] {
  let section = '';
  return text(path)
    .split('\n')
    .flatMap((line): [string, string, string][] => {
      section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section;
      const pair = /^(\w+)=(.*)$/.exec(line);
      return pair === null ? [] : [[section, pair[1] ?? '', pair[2] ?? '']];
    });
}

export const units = (): string[] => globSync('deploy/systemd/*.service', { cwd: root }).sort();

/** /usr/bin/node /opt/orders/node_modules/<package>/bin/<program>.js … → <program> … */
function unitCommand(line: string): string[] {
  const [node, script = '', ...args] = line.split(' ');
  const program = /^\/opt\/orders\/node_modules\/((?:@kit\/)?[\w-]+)\/(bin\/([\w-]+)\.js)$/.exec(script);
  if (node !== '/usr/bin/node' || program === null) throw new Error(`not a program of ours: ${line}`);
  const manifest = JSON.parse(text(`packages/${(program[1] ?? '').replace('@kit/', '')}/package.json`)) as { bin: Record<string, string> };
  const [, , file = '', name = ''] = program;
  if (manifest.bin[name]?.replace('./', '') !== file) throw new Error(`${script} is not a program of ${program[1]}`);
  return [name, ...args];
}

/** Every process the examples start, the databases' own left out. */
export function deployedProcesses(): DeployedProcess[] {
  const services = Object.entries(compose().services)
    .filter(([, service]) => service.build !== undefined)
    .map(([name, service]) => ({
      where: `compose ${name}`,
      argv: service.command ?? [],
      environment: service.environment ?? {},
      stopSeconds: service.stop_grace_period === undefined ? undefined : Number.parseInt(service.stop_grace_period, 10),
    }));
  const maps = new Map(resources().flatMap(({ kind, metadata, data }) => (kind === 'ConfigMap' ? [[metadata.name, data ?? {}]] : [])));
  const containers = pods().flatMap(({ where, spec }) =>
    spec.containers.map(({ command, env = [], envFrom = [] }) => ({
      where,
      argv: command,
      environment: Object.assign(
        {},
        ...envFrom.map(({ configMapRef }) => maps.get(configMapRef?.name)),
        Object.fromEntries(env.map(({ name, value = '' }) => [name, value])),
      ) as Record<string, string>,
      stopSeconds: spec.terminationGracePeriodSeconds,
    })),
  );
  const started = units().flatMap((path) => {
    const lines = unitLines(path).filter(([section]) => section === 'Service');
    const values = (name: string): string[] => lines.filter(([, key]) => key === name).map(([, , value]) => value);
    const stop = values('TimeoutStopSec')[0];
    return [...values('ExecStartPre'), ...values('ExecStart')].map((line) => ({
      where: path,
      argv: unitCommand(line),
      environment: Object.fromEntries(values('Environment').map((pair) => pair.split(/=(.*)/s).slice(0, 2) as [string, string])),
      stopSeconds: stop === undefined ? undefined : Number(stop),
    }));
  });
  const image = /^CMD (\[.*\])$/m.exec(text('deploy/docker/Dockerfile'))?.[1] ?? '[]';
  return [
    ...services,
    ...containers,
    ...started,
    { where: 'Dockerfile', argv: JSON.parse(image) as string[], environment: {}, stopSeconds: undefined },
  ];
}
