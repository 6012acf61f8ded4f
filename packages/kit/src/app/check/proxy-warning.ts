import type { Fault } from '../../options/fault.ts';
import type { App } from '../declare/module.ts';

/** W014: client addresses are counted, and nothing says whether they are those of a proxy. */
export function proxyWarning({ routes, modules, settings }: Pick<App, 'routes' | 'modules' | 'settings'>): Fault[] {
  const countsAddresses =
    routes.some(({ throttles }) => throttles.some(({ phase }) => phase === 'client')) || modules.some(({ name }) => name === 'apikeys');
  if (!countsAddresses || settings.trustedProxies !== undefined) return [];
  return [
    {
      id: 'W014',
      message:
        'Requests and invalid keys are counted by client address, and no proxy is trusted: behind a proxy all clients share one address.',
      hint: 'Set TRUSTED_PROXIES to its address, or to none where there is no proxy.',
    },
  ];
}

/** W044, of `kit doctor`: a proxy is in front, and a process that stops does not give it time to notice. */
export function shutdownWarning({ settings }: Pick<App, 'settings'>): Fault[] {
  const { trustedProxies = [], shutdownDelayMs } = settings;
  if (trustedProxies.length === 0 || shutdownDelayMs > 0) return [];
  return [
    {
      id: 'W044',
      message:
        'A proxy is trusted, and a process that stops closes its port before the proxy can notice: requests can fail at each restart.',
      hint: 'Set SHUTDOWN_DELAY_MS to two probe periods of the proxy.',
    },
  ];
}
