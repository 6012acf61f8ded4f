import { InvalidOptions, optionFaults, type OptionRules } from '../../options/read-options.ts';
import { filledText, flag, guard, instanceOf, rule, wholeNumber } from '../../options/value-rule.ts';
import { Permission } from '../../permissions/permission.ts';

/** Where Prometheus reads the metrics: a port of its own, or a path of the application with a permission. */
export interface MetricsOptions {
  /** Serves `/metrics` on a port of its own, for processes without routes too, such as webhook workers. 0 takes a free one. */
  readonly port?: number;
  /** Who can reach that port. Default: `127.0.0.1`. There is no login: another address must be one that only the monitoring reaches. */
  readonly host?: string;
  /** Serves the metrics as a route of the application. Needs a `permission`. */
  readonly path?: `/${string}`;
  /** Who can read the metrics at `path`. */
  readonly permission?: Permission;
  /** The scope the route declares, for `permission: hasScopes()`. */
  readonly scope?: string;
  /** Memory, CPU, garbage collection and the delay of the event loop of the process; on unless false. */
  readonly process?: boolean;
  /** Requests by tenant, for so many of the busiest; the others are counted together. Default: 0; requests are not counted by tenant. */
  readonly tenants?: number;
}

export interface MetricsSettings {
  readonly listen: { readonly port: number; readonly host: string } | undefined;
  readonly route: { readonly path: `/${string}`; readonly permission: Permission; readonly scope: string | undefined } | undefined;
  readonly process: boolean;
  readonly tenants: number;
}

const rules: OptionRules<MetricsOptions> = {
  port: wholeNumber(0, 65_535),
  host: filledText,
  path: rule('a path such as "/metrics"', (value) => typeof value === 'string' && /^\/[\w/-]+$/.test(value)),
  permission: guard(instanceOf(Permission, 'a permission, such as isStaff')),
  scope: guard(filledText),
  process: flag,
  tenants: wholeNumber(0, 200),
};

const PLACES = 'Write metrics({ port: 9464 }) or metrics({ path: "/metrics", permission: isStaff }).';

export function readMetricsOptions(options: MetricsOptions | undefined): MetricsSettings {
  const faults = optionFaults('metrics()', options, rules);
  const fault = (message: string) => faults.push({ id: 'E011', message: `metrics(): ${message}`, hint: PLACES });
  const { port, host = '127.0.0.1', path, permission, scope, process = true, tenants = 0 } = options ?? {};
  if (port === undefined && path === undefined) fault('neither a port nor a path is given, so the metrics could not be read.');
  if (path !== undefined && permission === undefined) fault('a path needs a permission: metrics tell how the application is used.');
  if (path === undefined && (permission !== undefined || scope !== undefined))
    fault('a permission or scope without a path protects nothing.');
  if (port === undefined && options?.host !== undefined) fault('a host without a port does nothing.');
  if (faults.length > 0) throw new InvalidOptions(faults);
  return {
    listen: port === undefined ? undefined : { port, host },
    route: path === undefined || permission === undefined ? undefined : { path, permission, scope },
    process,
    tenants,
  };
}
