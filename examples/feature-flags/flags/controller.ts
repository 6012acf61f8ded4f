import { Controller, isAuthenticated, route, type ControllerClass } from 'kit';
import { z } from 'zod';
import { isFlagOn } from './flags.ts';
import type { FlagSettings } from './options.ts';

const Flag = z.object({ name: z.string(), enabled: z.boolean() });

/** `GET /flags`: the flags of the caller, for a front end. */
export function flagController({ flags }: FlagSettings): ControllerClass {
  return class FeatureFlagController extends Controller {
    static override readonly tags = ['flags'];

    list = route.get(
      '/',
      {
        summary: 'List the feature flags of the caller',
        permission: isAuthenticated,
        response: z.object({ items: z.array(Flag).max(1000) }),
      },
      async ({ db, user }) => {
        const names = Object.keys(flags);
        const enabled = await Promise.all(names.map((name) => isFlagOn(db, name, user.id)));
        return { items: names.map((name, index) => ({ name, enabled: enabled[index] === true })) };
      },
    );
  };
}
