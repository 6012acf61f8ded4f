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
