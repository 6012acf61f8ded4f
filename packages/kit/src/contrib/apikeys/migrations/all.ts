import { initial } from './0001_initial.ts';
import { usage } from './0002_usage.ts';

export const apiKeyMigrations = [initial, usage];
