import type { App } from '../../../app/declare/module.ts';
import { moduleState } from '../../../app/assemble/module-state.ts';

/** The app that records in a database: its resources decide which values a reader sees, and its controllers whether entries are followed. */
export const recordingApps = moduleState<App>({ name: 'Audit entries', setUp: 'add audit() to the modules of createApp' });
