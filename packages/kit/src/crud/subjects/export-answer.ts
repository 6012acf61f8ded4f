import { jsonSchema } from '../../http/declare/json-schema.ts';
import { EXPORT_STATES, type StoredExport } from './stored-exports.ts';

/** An export as callers see it. */
export interface ExportAnswer {
  readonly state: StoredExport['state'];
  readonly requested_at: string;
  readonly expires_at: string | null;
  readonly bytes: number;
  readonly percent: number;
}

export function exportAnswerSchema(title: string) {
  return jsonSchema<ExportAnswer>({
    title,
    type: 'object',
    properties: {
      state: { type: 'string', enum: [...EXPORT_STATES] },
      requested_at: { type: 'string', format: 'date-time' },
      expires_at: { type: ['string', 'null'], format: 'date-time', description: 'Until when it can be downloaded.' },
      bytes: { type: 'integer' },
      percent: { type: 'integer', description: 'How much of it is written.' },
    },
    required: ['state', 'requested_at', 'expires_at', 'bytes', 'percent'],
    additionalProperties: false,
  });
}

export function exportAnswer({ state, requested_at, expires_at, bytes, percent }: StoredExport): ExportAnswer {
  return { state, requested_at: requested_at.toISOString(), expires_at: expires_at?.toISOString() ?? null, bytes: Number(bytes), percent };
}
