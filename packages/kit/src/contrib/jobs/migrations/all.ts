import { initial } from './0001_initial.ts';
import { traceparent } from './0002_traceparent.ts';
import { jobsOfRecord } from './0003_jobs_of_record.ts';
import { scheduleText } from './0004_schedule_text.ts';
import { turnsOfTenants } from './0005_turns_of_tenants.ts';

/** In order. Released ones are never edited. */
export const jobMigrations = [initial, traceparent, jobsOfRecord, scheduleText, turnsOfTenants];
