import type { AnyCrudOptions } from '../options/crud-options.ts';
import type { AnyResource } from '../declare/resource.ts';
import { Exporter } from '../files/export.ts';
import { Importer } from '../files/import.ts';
import { Stats } from '../read/stats.ts';
import { Answering } from './answering.ts';
import { Live } from './live.ts';
import { bulkOptions } from '../options/bulk-options.ts';
import { BulkOperations } from './bulk.ts';
import { FaultsBeside } from './faults-beside.ts';
import { Programs } from './programs.ts';
import { Reading } from './reading.ts';
import { type MountedBy, ResourceAccess } from './resource-access.ts';
import { Writing } from './writing.ts';

/** The parts of one mounted controller. Those that an option declares are undefined without it. */
export class Operations {
  readonly access: ResourceAccess;
  readonly answering: Answering;
  readonly reading: Reading;
  readonly writing: Writing;
  readonly programs: Programs;
  readonly faultsBeside: FaultsBeside;
  readonly bulk: BulkOperations | undefined;
  readonly exporter: Exporter | undefined;
  readonly importer: Importer | undefined;
  readonly stats: Stats | undefined;
  readonly live: Live | undefined;

  constructor(resource: AnyResource, options: AnyCrudOptions, mountedBy?: MountedBy) {
    const access = new ResourceAccess(resource, options, mountedBy);
    const { bulk, export: exported, import: imported, stats, live } = options;
    this.access = access;
    this.answering = new Answering(options);
    this.programs = new Programs(access);
    this.faultsBeside = new FaultsBeside(access, this.programs);
    this.reading = new Reading(access, this.answering, this.programs);
    this.writing = new Writing(access, this.answering, this.reading);
    this.bulk = bulk === undefined ? undefined : new BulkOperations(access, this.faultsBeside, bulkOptions(bulk));
    this.exporter = exported === undefined ? undefined : new Exporter(access, exported);
    this.importer = imported === undefined ? undefined : new Importer(access, imported);
    this.stats = stats === undefined ? undefined : new Stats(access, stats);
    this.live = live === true ? new Live(access) : undefined;
  }
}
