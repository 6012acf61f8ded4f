import type { Alert } from '../state/health.ts';
import type { FiringAlert } from './alert-store.ts';

export interface AlertChanges {
  /** New ones, and those that became worse. */
  readonly fired: readonly (Alert & Pick<FiringAlert, 'since'>)[];
  readonly resolved: readonly FiringAlert[];
  /** Those that go on, with what they show now. */
  readonly kept: readonly FiringAlert[];
}

/** What is new since the last check. One that goes on is not sent again, also when its number changes or it becomes less severe. */
export function alertChanges(firing: readonly FiringAlert[], alerts: readonly Alert[], now: Date): AlertChanges {
  const before = new Map(firing.map((alert) => [alert.name, alert]));
  const after = new Map(alerts.map((alert) => [alert.name, alert]));
  const isNew = ({ name, severity }: Alert): boolean => {
    const known = before.get(name);
    return known === undefined || (severity === 'bad' && known.severity === 'warning');
  };
  const all = [...after.values()].map((alert) => Object.assign({ since: before.get(alert.name)?.since ?? now }, alert));
  return {
    fired: all.filter(isNew),
    resolved: firing.filter(({ name }) => !after.has(name)),
    kept: all.filter((alert) => !isNew(alert)),
  };
}
