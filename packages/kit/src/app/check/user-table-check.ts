import { userTableFaults } from '../../auth/people/user-table.ts';
import type { Check } from '../declare/check.ts';
import type { App } from '../declare/module.ts';

/** For modules that join the users' table, or ask for owners in it: a wrong name would show at the first request or delivery. */
export const userTableCheck: Check<App> = {
  name: 'user_table',
  run: (app) => (app.users === null ? [] : userTableFaults(app.db, app.users.table)),
};
