import type { ProvidedRegistry } from '../../app/declare/registry.ts';
import { basePathOf, type InstanceOptions, pluginOf } from './instance.ts';

/** For pages: what this instance offers, all of it below its base path. */
export function pageRoutes(instance: InstanceOptions): Pick<ProvidedRegistry, 'accountRoutes' | 'tenantRoutes'> {
  const base = () => basePathOf(instance);
  const { enabled = false, disableSignUp = false, sendResetPassword } = instance.emailAndPassword ?? {};
  return {
    accountRoutes: {
      kind: 'better-auth',
      needs: 'betterAuth()',
      base,
      signUp: enabled && !disableSignUp,
      reset: sendResetPassword !== undefined,
      secondFactor: pluginOf(instance, 'two-factor') !== undefined,
    },
    ...(pluginOf(instance, 'organization') === undefined
      ? {}
      : {
          tenantRoutes: {
            kind: 'organizations',
            base,
            roles: ['owner', 'admin', 'member'],
            managers: ['owner', 'admin'],
            // The person signs up first.
            registration: false,
          },
        }),
  };
}
