import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { JOB_STATUSES, type JobStatus } from '../models.ts';

export interface AcceptedJob {
  readonly id: string;
  readonly status: JobStatus;
  readonly url: string | null;
}

/** The response schema of a route that starts a job: its id, status and URL. */
export const JobAccepted = jsonSchema<AcceptedJob>(
  {
    type: 'object',
    properties: {
      id: { type: 'string', format: 'uuid' },
      status: { type: 'string', enum: [...JOB_STATUSES] },
      url: { type: ['string', 'null'], description: 'URL of the job.' },
    },
    required: ['id', 'status', 'url'],
    additionalProperties: false,
  },
  { name: 'AcceptedJob' },
);
