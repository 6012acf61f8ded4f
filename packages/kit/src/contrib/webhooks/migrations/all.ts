import { initial } from './0001_initial.ts';
import { operators } from './0002_operators.ts';
import { dueOfEndpoint } from './0003_due_of_endpoint.ts';
import { attempts } from './0004_attempts.ts';
import { failedOfEndpoint } from './0005_failed_of_endpoint.ts';
import { endpointSettings } from './0006_endpoint_settings.ts';
import { counters } from './0007_counters.ts';
import { traceparent } from './0008_traceparent.ts';
import { deliveryReferences } from './0009_delivery_references.ts';
import { eventsOfRecord } from './0010_events_of_record.ts';
import { valueDomains } from './0011_value_domains.ts';
import { publishFunction } from './0012_publish_function.ts';
import { sendTraceparent } from './0013_send_traceparent.ts';
import { lighterPublish } from './0014_lighter_publish.ts';
import { deliverFunction } from './0015_deliver_function.ts';
import { lockOfOwner } from './0016_lock_of_owner.ts';

/** In order. Released ones are never edited. */
export const webhookMigrations = [
  initial,
  operators,
  dueOfEndpoint,
  attempts,
  failedOfEndpoint,
  endpointSettings,
  counters,
  traceparent,
  deliveryReferences,
  eventsOfRecord,
  valueDomains,
  publishFunction,
  sendTraceparent,
  lighterPublish,
  deliverFunction,
  lockOfOwner,
];
