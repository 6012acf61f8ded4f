import { Permission } from './permission.ts';

/** A person who logged in: never a key, whatever its scopes. */
export const byLogin = new Permission({ name: 'byLogin', evaluate: ({ principal }) => principal?.scopes === null });
