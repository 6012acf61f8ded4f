import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as configServer from '@kit/config-server';
import * as configClient from '@kit/config-server/client';
import * as kit from 'kit';
import * as admin from 'kit/admin';
import * as portal from 'kit/portal';
import * as accounts from 'kit/contrib/accounts';
import * as smtp from 'kit/contrib/accounts/smtp';
import * as nats from 'kit/contrib/webhooks/nats';
import * as rabbitmq from 'kit/contrib/webhooks/rabbitmq';
import * as betterAuth from 'kit/contrib/better-auth';
import * as jwt from 'kit/contrib/jwt';
import * as apiKeys from 'kit/contrib/apikeys';
import * as audit from 'kit/contrib/audit';
import * as grants from 'kit/contrib/grants';
import * as grantBackends from 'kit/contrib/grants/backends';
import * as jobs from 'kit/contrib/jobs';
import * as mcp from 'kit/contrib/mcp';
import * as metrics from 'kit/contrib/metrics';
import * as pages from 'kit/contrib/pages';
import * as personal from 'kit/contrib/personal';
import * as uploads from 'kit/contrib/uploads';
import * as requests from 'kit/contrib/requests';
import * as tenants from 'kit/contrib/tenants';
import * as tracing from 'kit/contrib/tracing';
import * as webhooks from 'kit/contrib/webhooks';
import * as crud from 'kit/crud';
import * as db from 'kit/db';
import * as kysely from 'kit/kysely';
import * as di from 'kit/di';
import * as middleware from 'kit/middleware';
import * as openapi from 'kit/openapi';
import * as testing from 'kit/testing';
import * as throttle from 'kit/throttle';
import * as uploadsBrowser from 'kit/uploads/browser';
import * as verify from 'kit/webhooks/verify';
import * as verifyWeb from 'kit/webhooks/verify-web';
import { root } from './architecture/module-graph.ts';

/** An options object whose only member is unknown. */
type Misspelt = never;
/** Calls the function with it; every other argument is as small as the check allows. */
type Call = (misspelt: Misspelt) => unknown;
type Entry = Call | 'takes no options';

const NAME = 'a_name_nobody_knows';
const SECRET = webhooks.generateSecret();
const none = 'takes no options';
/** Stands for a database, an app or a row: only the options are looked at. */
const nothing = { query: () => [], transaction: () => undefined } as never;
const aJob = jobs.job('options_test_job', { input: z.object({}), run: () => undefined });
const start = () => undefined;
const aModel = db.model('options_test_rows', { key: db.t.text(80).pk() });

const mounted = (controller: InstanceType<kit.ControllerClass>) =>
  kit.createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/things': controller } } });
/** A subclass with the unknown static: options of controllers are statics. */
const withStatic = (base: kit.ControllerClass) => (misspelt: Misspelt) => {
  const Subclass = class extends (base as new () => object) {} as kit.ControllerClass;
  Object.assign(Subclass, misspelt);
  mounted(new Subclass());
};
const inRoute = (route: kit.Route) => {
  class Things extends kit.Controller {
    one = route;
  }
  mounted(new Things());
};

/** Every exported function and class. One that takes options refuses a name it does not know; data (rows, values) is not options. */
const exported: Readonly<Record<string, { readonly module: object; readonly entries: Readonly<Record<string, Entry>> }>> = {
  kit: {
    module: kit,
    entries: {
      // A class of its own may have statics of its own; near misses are refused (packages/kit/src/app/start-up.test.ts).
      Controller: none,
      KitError: (misspelt) => new kit.KitError({ code: 'a', status: 400, detail: 'a', ...(misspelt as object) }),
      Permission: (misspelt) => new kit.Permission({ name: 'a', evaluate: () => true, ...(misspelt as object) }),
      all: none,
      any: none,
      command: none,
      appDatabase: (misspelt) => kit.appDatabase(misspelt),
      createApp: (misspelt) => kit.createApp({ database: 'sqlite::memory:', mount: {}, ...(misspelt as object) }),
      defineErrors: (misspelt) => kit.defineErrors('options_test', { gone: { status: 410, detail: 'Gone.', ...(misspelt as object) } }),
      domainEvent: none,
      emit: none,
      errors: (misspelt) => kit.errors().on(Error, { status: 400, code: 'a', ...(misspelt as object) }),
      hasRole: none,
      hasRule: (misspelt) => kit.hasRule('a', misspelt),
      hasScopes: kit.hasScopes,
      invalidCredentials: none,
      isKitError: none,
      isOwner: (misspelt) => kit.isOwner('owner_id', misspelt),
      definePlugin: (misspelt: object) => kit.definePlugin({ name: 'options_test', ...misspelt }),
      migrateApp: (misspelt) =>
        kit.migrateApp(kit.createApp({ database: 'sqlite::memory:', mount: {}, log: { level: 'silent' } }), misspelt),
      moduleState: kit.moduleState,
      seed: none,
      not: none,
      on: (misspelt) => kit.on(kit.domainEvent('options.tested', z.object({})), start, misspelt),
      page: none,
      query: none,
      multipart: (misspelt) => kit.multipart({}, misspelt),
      filePart: (misspelt) => kit.filePart(misspelt),
      raw: (misspelt) => kit.raw(['text/csv'], misspelt),
      requiresScope: none,
      scopeCovers: none,
    },
  },
  'kit, route': {
    module: kit.route,
    entries: Object.fromEntries(
      (['get', 'post', 'put', 'patch', 'delete', 'query', 'stream'] as const).map((verb) => [
        verb,
        (misspelt: Misspelt) =>
          inRoute((kit.route[verb] as typeof kit.route.post)('/', { permission: kit.isStaff, ...(misspelt as object) }, start)),
      ]),
    ),
  },
  'kit, errors of a catalog': { module: { not_found: kit.coreErrors.not_found }, entries: { not_found: kit.coreErrors.not_found } },
  'kit/admin': {
    module: admin,
    entries: {
      admin: admin.admin,
      adminDone: none,
      adminEach: none,
      chart: none,
      modelResource: (misspelt) => admin.modelResource(aModel, misspelt),
      screen: (misspelt) => admin.screen(aModel, misspelt),
      section: none,
    },
  },
  'kit/contrib/accounts': {
    module: accounts,
    entries: {
      AccountController: none,
      accounts: accounts.accounts,
      accountsOf: none,
      activateUser: (misspelt) => accounts.activateUser(nothing, 'id', misspelt),
      addGroupMember: (misspelt) => accounts.addGroupMember(nothing, 'id', 'id', misspelt),
      changePassword: (misspelt) => accounts.changePassword(nothing, nothing, 'password', misspelt),
      changeStaff: (misspelt) => accounts.changeStaff(nothing, 'id', true, misspelt),
      createGroup: (misspelt) => accounts.createGroup(nothing, misspelt),
      createUser: (misspelt) => accounts.createUser(nothing, misspelt, nothing),
      deactivateUser: (misspelt) => accounts.deactivateUser(nothing, 'id', misspelt),
      deleteGroup: (misspelt) => accounts.deleteGroup(nothing, 'id', misspelt),
      deleteUser: (misspelt) => accounts.deleteUser(nothing, 'id', misspelt),
      folderMail: accounts.folderMail,
      inviteUser: (misspelt) => accounts.inviteUser(nothing, misspelt, nothing),
      logIn: (misspelt) => accounts.logIn(nothing, misspelt, nothing, nothing),
      logOut: none,
      openSession: (misspelt) => accounts.openSession(nothing, nothing, nothing, misspelt),
      removeGroupMember: (misspelt) => accounts.removeGroupMember(nothing, 'id', 'id', misspelt),
      renameGroup: (misspelt) => accounts.renameGroup(nothing, 'id', 'name', misspelt),
      resetSecondFactor: none,
    },
  },
  'kit/contrib/accounts/smtp': { module: smtp, entries: { smtpMail: smtp.smtpMail } },
  'kit/contrib/webhooks/nats': {
    module: nats,
    entries: { natsDestination: (misspelt) => nats.natsDestination({ name: 'a', connection: {}, ...(misspelt as object) }) },
  },
  'kit/contrib/webhooks/rabbitmq': {
    module: rabbitmq,
    entries: {
      rabbitMqDestination: (misspelt) =>
        rabbitmq.rabbitMqDestination({ name: 'a', url: 'amqp://127.0.0.1', exchange: '', ...(misspelt as object) }),
    },
  },
  'kit/contrib/better-auth': {
    module: betterAuth,
    entries: {
      betterAuth: (misspelt) =>
        betterAuth.betterAuth({ handler: async () => new Response(), options: {}, $context: Promise.resolve() }, misspelt),
      joinedKysely: none,
      kitPlugin: none,
      resumeTenant: (misspelt) => betterAuth.resumeTenant(nothing, '', misspelt),
      suspendTenant: (misspelt) => betterAuth.suspendTenant(nothing, '', misspelt),
    },
  },
  'kit/contrib/jwt': { module: jwt, entries: { jwtBearer: jwt.jwtBearer } },
  'kit/contrib/apikeys': {
    module: apiKeys,
    entries: {
      ApiKeyController: withStatic(apiKeys.ApiKeyController),
      ServiceUserController: withStatic(apiKeys.ServiceUserController),
      ApiKeyRateThrottle: (misspelt) => apiKeys.ApiKeyRateThrottle('1/s', misspelt),
      apiKeys: apiKeys.apiKeys,
      createApiKey: (misspelt) => apiKeys.createApiKey(nothing, misspelt),
      currentApiKey: none,
      keyPatternFor: none,
      revokeApiKey: (misspelt) => apiKeys.revokeApiKey(nothing, 'id', misspelt),
      rotateApiKey: (misspelt) => apiKeys.rotateApiKey(nothing, 'id', misspelt),
      updateApiKey: (misspelt) => apiKeys.updateApiKey(nothing, 'id', misspelt),
      useApiKeys: (misspelt) => apiKeys.useApiKeys(nothing, misspelt),
      verifyApiKey: (misspelt) => apiKeys.verifyApiKey(nothing, 'key', misspelt),
    },
  },
  'kit/contrib/audit': {
    module: audit,
    entries: {
      AuditController: withStatic(audit.AuditController),
      TenantAuditController: withStatic(audit.TenantAuditController),
      audit: audit.audit,
    },
  },
  'kit/contrib/mcp': { module: mcp, entries: { mcp: mcp.mcp } },
  'kit/contrib/metrics': { module: metrics, entries: { metrics: metrics.metrics } },
  'kit/contrib/uploads': {
    module: uploads,
    entries: {
      UploadController: withStatic(uploads.UploadController),
      clamav: uploads.clamav,
      countReferences: none,
      diskStore: uploads.diskStore,
      downloadUrl: none,
      expandUpload: none,
      processUploads: (misspelt) => uploads.processUploads(nothing, misspelt),
      requireUpload: none,
      s3Store: uploads.s3Store,
      unreferencedUploads: (misspelt) => uploads.unreferencedUploads(nothing, [], misspelt),
      uploadRef: uploads.uploadRef,
      uploadRelation: none,
      uploads: uploads.uploads,
    },
  },
  'kit/portal': {
    module: portal,
    entries: {
      portal: portal.portal,
      portalLink: (misspelt) => portal.portalLink(nothing, misspelt),
      revokePortalLink: (misspelt) => portal.revokePortalLink(nothing, 'id', misspelt),
    },
  },
  'kit/contrib/requests': {
    module: requests,
    entries: {
      QuotaController: none,
      RequestController: none,
      UsageController: none,
      requests: requests.requests,
      usage: (misspelt) => requests.usage(nothing, misspelt),
    },
  },
  'kit/contrib/pages': { module: pages, entries: { pages: pages.pages } },
  'kit/contrib/personal': { module: personal, entries: { PersonalDataController: none, personalData: personal.personalData } },
  'kit/contrib/tenants': {
    module: tenants,
    entries: {
      TenantController: none,
      addMember: (misspelt) => tenants.addMember(nothing, misspelt),
      createTenant: (misspelt) => tenants.createTenant(nothing, misspelt),
      inviteMember: (misspelt) => tenants.inviteMember(nothing, misspelt),
      removeMember: (misspelt) => tenants.removeMember(nothing, misspelt),
      resumeTenant: (misspelt) => tenants.resumeTenant(nothing, '', misspelt),
      suspendTenant: (misspelt) => tenants.suspendTenant(nothing, '', misspelt),
      tenants: tenants.tenants,
    },
  },
  'kit/contrib/tracing': { module: tracing, entries: { tracing: tracing.tracing } },
  'kit/contrib/grants': {
    module: grants,
    entries: {
      actionsOf: none,
      explainAccess: none,
      grant: (misspelt) => grants.grant(nothing, misspelt),
      grantedCondition: none,
      grants: (misspelt) => grants.grants(aModel, misspelt),
      hasGrant: none,
      objectActions: (misspelt) => grants.objectActions(aModel, { actions: ['view'], ...(misspelt as object) }),
      objectGrants: (misspelt) => grants.objectGrants({ objects: [], ...(misspelt as object) }),
      objectsOf: (misspelt) => grants.objectsOf(nothing, { user: null, tenant: null }, nothing, 'view', misspelt),
      replaceGrants: (misspelt) => grants.replaceGrants(nothing, misspelt),
      revoke: (misspelt) => grants.revoke(nothing, misspelt),
      sharing: none,
      transfer: (misspelt) => grants.transfer(nothing, misspelt),
      whoCan: none,
    },
  },
  'kit/contrib/grants/backends': {
    module: grantBackends,
    // Permissions by action: the names are the app's.
    entries: { rulesBackend: none },
  },
  'kit/contrib/jobs': {
    module: jobs,
    entries: {
      ImmediateTaskQueue: none,
      RecordingTaskQueue: none,
      bullMqQueue: none,
      graphileQueue: jobs.graphileQueue,
      pgBossQueue: (misspelt) => jobs.pgBossQueue(nothing, misspelt),
      runQueuedJob: none,
      JobController: withStatic(jobs.JobController),
      accepted: none,
      betterSqlite3Transaction: (misspelt) => jobs.betterSqlite3Transaction(nothing, misspelt),
      drizzleTransaction: (misspelt) => jobs.drizzleTransaction(nothing, nothing, misspelt),
      kyselyTransaction: (misspelt) => jobs.kyselyTransaction(nothing, misspelt),
      mikroOrmTransaction: (misspelt) => jobs.mikroOrmTransaction(nothing, misspelt),
      nodeSqliteTransaction: (misspelt) => jobs.nodeSqliteTransaction(nothing, misspelt),
      pgTransaction: (misspelt) => jobs.pgTransaction(nothing, misspelt),
      prismaTransaction: (misspelt) => jobs.prismaTransaction(nothing, misspelt),
      typeOrmTransaction: (misspelt) => jobs.typeOrmTransaction(nothing, misspelt),
      cancelJob: none,
      findJob: none,
      job: (misspelt) => jobs.job('options_test', { input: z.object({}), run: start, ...(misspelt as object) }),
      jobs: (misspelt) => jobs.jobs({ jobs: [], ...(misspelt as object) }),
      permanent: none,
      retryAfter: none,
      retryFailed: (misspelt) => jobs.retryFailed(nothing, misspelt),
      retryJob: none,
      runDueJobs: (misspelt) => jobs.runDueJobs(nothing, misspelt),
      startJob: (misspelt) => jobs.startJob({ isTransaction: true } as never, aJob, {}, misspelt),
      startJobSync: (misspelt) => jobs.startJobSync({ isTransaction: true, sync: true } as never, aJob, {}, misspelt),
      startJobWorker: (misspelt) => jobs.startJobWorker(nothing, misspelt),
      startJobs: (misspelt) => jobs.startJobs({ isTransaction: true } as never, aJob, [{}], misspelt),
      useJobs: (misspelt) => jobs.useJobs(nothing, { jobs: [], ...(misspelt as object) }),
    },
  },
  'kit/contrib/webhooks': {
    module: webhooks,
    entries: {
      InvalidSignature: none,
      OnCommitTaskQueue: (misspelt) => new webhooks.OnCommitTaskQueue(misspelt),
      URLPolicy: webhooks.URLPolicy,
      TenantWebhookController: withStatic(webhooks.TenantWebhookController),
      WebhookEndpointController: withStatic(webhooks.WebhookEndpointController),
      betterSqlite3Transaction: (misspelt) => webhooks.betterSqlite3Transaction(nothing, misspelt),
      UndeliverableMessage: none,
      cloudEvents: (misspelt) => webhooks.cloudEvents({ source: '/', ...(misspelt as object) }),
      destination: (misspelt) => webhooks.destination({ name: 'a', send: () => Promise.resolve(), ...(misspelt as object) }),
      redisStreamDestination: (misspelt) =>
        webhooks.redisStreamDestination({ name: 'a', client: { call: () => Promise.resolve() }, ...(misspelt as object) }),
      createEndpoint: (misspelt) => webhooks.createEndpoint(nothing, misspelt),
      deliverDue: (misspelt) => webhooks.deliverDue(nothing, misspelt),
      deliverEvent: none,
      disableEndpoint: (misspelt) => webhooks.disableEndpoint(nothing, 'id', 'manual', misspelt),
      drizzleTransaction: (misspelt) => webhooks.drizzleTransaction(nothing, nothing, misspelt),
      enableEndpoint: none,
      eventType: (misspelt) => webhooks.eventType('a.b', z.object({}), misspelt),
      generateSecret: none,
      httpTransport: webhooks.httpTransport,
      kyselyTransaction: (misspelt) => webhooks.kyselyTransaction(nothing, misspelt),
      mikroOrmTransaction: (misspelt) => webhooks.mikroOrmTransaction(nothing, misspelt),
      nodeSqliteTransaction: (misspelt) => webhooks.nodeSqliteTransaction(nothing, misspelt),
      pgTransaction: (misspelt) => webhooks.pgTransaction(nothing, misspelt),
      pingEndpoint: none,
      prismaTransaction: (misspelt) => webhooks.prismaTransaction(nothing, misspelt),
      publish: (misspelt) => webhooks.publish(nothing, 'a.b', {}, misspelt),
      publishMany: (misspelt) => webhooks.publishMany(nothing, [{ type: 'a.b', data: {}, owner: 'a', ...(misspelt as object) }]),
      publishSync: (misspelt) => webhooks.publishSync({ sync: true } as never, 'a.b', {}, misspelt),
      recoverEndpoint: none,
      retryDelivery: (misspelt) => webhooks.retryDelivery(nothing, 'id', misspelt),
      rotateSecret: none,
      setSecret: none,
      signingSecret: none,
      startWorker: (misspelt) => webhooks.startWorker(nothing, misspelt),
      typeOrmTransaction: (misspelt) => webhooks.typeOrmTransaction(nothing, misspelt),
      updateEndpoint: (misspelt) => webhooks.updateEndpoint(nothing, nothing, misspelt),
      useWebhooks: (misspelt) => webhooks.useWebhooks(nothing, misspelt),
      verifySignature: (misspelt) => webhooks.verifySignature(SECRET, {}, '', misspelt),
      webhookQueue: none,
      webhooks: webhooks.webhooks,
    },
  },
  'kit/crud': {
    module: crud,
    entries: {
      avg: none,
      count: none,
      countDistinct: none,
      max: none,
      min: none,
      sum: none,
      CrudController: (misspelt) =>
        crud.CrudController(crud.resource(aModel, { unscoped: true }), { permission: kit.isStaff, ...(misspelt as object) }),
      crudOf: (misspelt) => {
        const declared = crud.resource(aModel, { unscoped: true });
        const app = kit.createApp({ database: 'sqlite::memory:', mount: {}, resources: [declared], log: { level: 'silent' } });
        crud.crudOf(app, declared).as(Object.assign({ user: null }, misspelt));
      },
      derived: (misspelt) => crud.derived(['a', 'b'], Object.assign({ a: () => ({}) }, misspelt)),
      filter: (misspelt) => crud.filter(kit.raw('text/plain'), () => ({}), misspelt),
      fullText: (misspelt) => crud.fullText(Object.assign({ columns: ['a'] }, misspelt)),
      many: (misspelt) => crud.many(() => aModel, 'key', misspelt),
      one: none,
      people: none,
      resource: (misspelt) => crud.resource(aModel, { unscoped: true, ...(misspelt as object) }),
      touched: none,
      visibleTo: (misspelt) => crud.visibleTo(kit.isStaff, misspelt),
      words: (misspelt) => crud.words('this.a = 1', misspelt),
      writableBy: none,
    },
  },
  'kit/db': {
    module: db,
    entries: {
      addCheck: none,
      addColumn: (misspelt) => db.addColumn('a', 'b', db.t.int(), misspelt),
      alterColumn: (misspelt) => db.alterColumn('a', 'b', db.t.int(), misspelt),
      backfill: (misspelt) => db.backfill('0001_a', { model: aModel, run: async () => undefined, ...(misspelt as object) }),
      checkDrift: none,
      code: none,
      compileWhere: none,
      count: none,
      countQueries: none,
      countUpTo: none,
      createFullText: (misspelt) => db.createFullText('a', misspelt),
      createIndex: (misspelt) => db.createIndex('a', misspelt),
      createTable: (misspelt) => db.createTable('a', { id: db.t.uuidv7().pk() }, misspelt),
      currentTransaction: none,
      dropCheck: none,
      dropColumn: none,
      dropFullText: none,
      dropIndex: none,
      dropTable: none,
      find: (misspelt) => db.find(nothing, aModel, 'key', misspelt),
      findBy: none,
      insert: none,
      insertMany: none,
      isUniqueViolation: none,
      json: none,
      list: (misspelt) => db.list(nothing, aModel, misspelt),
      migrate: (misspelt) => db.migrate(nothing, [], misspelt),
      migration: (misspelt) => db.migration('0001_a', [], misspelt),
      model: (misspelt) => db.model('a', { id: db.t.uuidv7().pk() }, misspelt),
      observeQueries: none,
      reveal: none,
      openDatabase: (misspelt) => db.openDatabase('sqlite::memory:', misspelt),
      pendingMigrations: none,
      proposeModuleMigration: none,
      remove: none,
      renameColumn: none,
      renameTable: none,
      runBackfills: (misspelt) => db.runBackfills(nothing, [], misspelt),
      softDelete: (misspelt) => db.softDelete(misspelt),
      softDeleteUnique: none,
      sql: (misspelt) => db.sql(misspelt),
      tableStatements: none,
      timestamps: none,
      update: none,
      userStamps: none,
      uuidv7: none,
      versioned: none,
      whereSql: none,
    },
  },
  'kit/kysely': { module: kysely, entries: { kyselyOf: none, whereExpression: none } },
  'kit/db, t': {
    module: db.t,
    entries: {
      array: none,
      bigint: none,
      bool: none,
      bytes: none,
      date: none,
      decimal: none,
      enum: none,
      float: db.t.float,
      int: db.t.int,
      json: none,
      ref: (misspelt) => db.t.ref('users', misspelt),
      text: db.t.text,
      timestamp: none,
      uuid: none,
      uuidv7: none,
    },
  },
  'kit/di': {
    module: di,
    entries: {
      Container: none,
      fromContext: none,
      override: none,
      scoped: (misspelt) => di.scoped(di.service('a'), {}, () => 1, misspelt),
      service: none,
      singleton: (misspelt) => di.singleton(di.service('a'), {}, () => 1, misspelt),
      transient: (misspelt) => di.transient(di.service('a'), {}, () => 1, misspelt),
      value: none,
    },
  },
  'kit/middleware': {
    module: middleware,
    entries: {
      HealthController: (misspelt) => new middleware.HealthController(misspelt),
      contentType: middleware.contentType,
      deprecation: none,
      nPlusOne: middleware.nPlusOne,
      paginationHeaders: none,
      queryHeaders: middleware.queryHeaders,
      requestId: middleware.requestId,
      requestLog: middleware.requestLog,
      responseCache: (misspelt) => middleware.responseCache(Object.assign({ routes: () => true }, misspelt)),
      responseVersions: (misspelt) => middleware.responseVersions(Object.assign({ versions: [{ version: '1' }] }, misspelt)),
      securityHeaders: middleware.securityHeaders,
      serverTiming: none,
    },
  },
  'kit/openapi': {
    module: openapi,
    entries: {
      generateClient: (misspelt) => openapi.generateClient([], misspelt),
      openApiDocument: (misspelt) => openapi.openApiDocument([], misspelt),
      referenceController: openapi.referenceController,
    },
  },
  'kit/testing': {
    module: testing,
    entries: {
      createPostgresDatabase: none,
      createSqliteDatabase: none,
      crudTests: (misspelt) => testing.crudTests(kit.Controller, misspelt),
      describeDatabases: (misspelt) => testing.describeDatabases('a', () => {}, misspelt),
      expectQueries: none,
      fakeClock: none,
      oneTimeCode: none,
      s3Double: testing.s3Double,
      sample: (misspelt) => testing.sample({ type: 'string' }, misspelt),
      testApp: (misspelt) => testing.testApp({ mount: {}, ...(misspelt as object) }),
    },
  },
  'kit/throttle': {
    module: throttle,
    entries: {
      anonymousThrottle: (misspelt) => throttle.anonymousThrottle('1/s', misspelt),
      clientThrottle: (misspelt) => throttle.clientThrottle('1/s', misspelt),
      memoryStorage: throttle.memoryStorage,
      parseRate: none,
      redisStorage: (misspelt) => throttle.redisStorage({ call: async () => null }, misspelt),
      scopedThrottle: none,
      sqlStorage: throttle.sqlStorage,
      tenantThrottle: (misspelt) => throttle.tenantThrottle('1/s', misspelt),
      userThrottle: (misspelt) => throttle.userThrottle('1/s', misspelt),
    },
  },
  'kit/uploads/browser': {
    module: uploadsBrowser,
    entries: { UploadFailed: none, sendUpload: (misspelt) => uploadsBrowser.sendUpload(nothing, misspelt) },
  },
  'kit/webhooks/verify': {
    module: verify,
    entries: {
      InvalidSecret: none,
      InvalidSignature: none,
      verifySignature: (misspelt) => verify.verifySignature(SECRET, {}, '', misspelt),
    },
  },
  'kit/webhooks/verify-web': {
    module: verifyWeb,
    entries: {
      InvalidSecret: none,
      InvalidSignature: none,
      verifySignature: (misspelt) => verifyWeb.verifySignature(SECRET, {}, '', misspelt),
    },
  },
};

/** The text between the parentheses of a function, or of the constructor of a class. */
function parametersOf(value: Function): string {
  const source = value.toString();
  const from = source.startsWith('class') ? source.indexOf('constructor(') : source.indexOf('(');
  if (from < 0) return '';
  const start = source.indexOf('(', from);
  let depth = 0;
  for (let at = start; at < source.length; at += 1) {
    if (source[at] === '(') depth += 1;
    else if (source[at] === ')' && (depth -= 1) === 0) return source.slice(start + 1, at);
  }
  return source.slice(start + 1);
}

test('a factory without its options says what it needs', async () => {
  const without = undefined as never;
  const calls: readonly (readonly [() => unknown, RegExp])[] = [
    [() => kit.createApp(without), /^.*createApp\(\): the options object is missing; use \{ mount:/s],
    [() => kit.createApp('sqlite::memory:' as never), /createApp\(\): the options object is "sqlite::memory:"/],
    [() => kit.defineErrors('options_test', without), /^defineErrors\(\): the catalog is missing/],
    [() => metrics.metrics(without), /^metrics\(\): neither a port nor a path is given/],
    [() => uploads.clamav(without), /^clamav\(\): give either socket or address/],
    [() => crud.resource(aModel, without), /^resource\(options_test_rows\): takes an options object/],
    [() => crud.CrudController(crud.resource(aModel, { unscoped: true }), without), /^CrudController\(\): takes an options object/],
    [() => crud.CrudController(without, without), /^CrudController\(\): the first argument is missing, but must be a resource\. Declare/],
    [
      () => crud.CrudController(aModel as never, without),
      /^CrudController\(\): the first argument is the model "options_test_rows", but must be a resource\. Declare .*resource\(options_test_rows,/,
    ],
    [
      () => crud.CrudController(crud.resource(aModel, { unscoped: true }), { permission: kit.isStaff, owner: 'key' } as never),
      /^CrudController\(\): "owner" is an option of resource\(\)\. Move it: CrudController\(resource\(model, \{ owner: … \}\), \{ … \}\)\.$/,
    ],
    [() => apiKeys.createApiKey(nothing, without), /^createApiKey\(\): the options object is missing; use \{ /],
    [() => grants.grant(nothing, without), /^grant\(\): the options object is missing; use \{ /],
    [() => webhooks.createEndpoint(nothing, without), /^createEndpoint\(\): the options object is missing; use \{ /],
    [() => accounts.createUser(nothing, without, nothing), /^createUser\(\): the options object is missing; use \{ username/],
    [() => accounts.createUser(nothing, { username: 'ann' }, nothing), /createUser\(\): clock is missing; .* accountsOf\(db\)\.management/],
    [() => accounts.logIn(nothing, without, nothing, nothing), /^logIn\(\): the options object is missing; use \{ login/],
  ];
  for (const [call, sentence] of calls) await expect((async () => call())()).rejects.toThrow(sentence);
});

/** What JavaScript itself says about a value that a function did not look at. */
const ENGINE_MESSAGE =
  /Cannot (?:read|set) propert|Cannot destructure|Cannot convert undefined|Cannot use 'in'|is not (?:a function|iterable|a constructor)|Invalid value used|argument must be of type/;
const madeByKit = ['Exchange', 'StartUpError', 'UploadFailed', 'StartRefusal', 'DocumentMismatch', 'RemoteSourceError', 'ConfigServer'];
/** They start something when they are called with nothing. */
const starting = ['createSqliteDatabase', 'ensurePostgresTemplate', 's3Double', 'describeDatabases'];
const notCalled = new Set([...madeByKit, ...starting]);

const everyModule: Readonly<Record<string, object>> = {
  ...Object.fromEntries(Object.entries(exported).map(([name, { module }]) => [name, module])),
  '@kit/config-server': configServer,
  '@kit/config-server/client': configClient,
};

test.each(Object.entries(everyModule))(
  '%s: a function that is called with nothing, or with another kind of value, says what it takes',
  async (_, module) => {
    const silent: string[] = [];
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function' || notCalled.has(name)) continue;
      const isClass = value.toString().startsWith('class');
      for (const given of [undefined, null, 42]) {
        const call = async (): Promise<unknown> => {
          const parameters = given === undefined ? [] : [given, given, given, given];
          return isClass ? Reflect.construct(value, parameters) : (value as (...all: unknown[]) => unknown)(...parameters);
        };
        const message = await call().then(
          () => '',
          (error: unknown) => (error as Error).message,
        );
        if (ENGINE_MESSAGE.test(message)) silent.push(`${name}(${String(given)}): ${message}`);
      }
    }
    expect(silent).toEqual([]);
  },
);

test('every public subpath is in the table', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages/kit/package.json'), 'utf8')) as { exports: Record<string, unknown> };
  const subpaths = Object.keys(exports).filter((path) => path !== './package.json');
  expect(subpaths.map((path) => `kit${path.slice(1)}`).filter((name) => exported[name] === undefined)).toEqual([]);
});

describe.each(Object.entries(exported))('%s', (_, { module, entries }) => {
  test('every exported function and class is in the table', () => {
    const functions = Object.entries(module).filter(([, value]) => typeof value === 'function');
    expect(Object.keys(entries).sort()).toEqual(functions.map(([name]) => name).sort());
  });

  test('what is said to take no options has no parameter for them', () => {
    const functions = module as Readonly<Record<string, Function>>;
    const without = Object.keys(entries).filter((name) => entries[name] === none);
    expect(without.filter((name) => /\b(options|filter)\b|\}\s*=\s*\{\s*\}/.test(parametersOf(functions[name]!)))).toEqual([]);
  });

  const taking = Object.entries(entries).filter((entry): entry is [string, Call] => entry[1] !== none);
  if (taking.length === 0) return;
  test.each(taking)('%s refuses an unknown option', async (_name, call) => {
    const outcome = (async () => call({ [NAME]: 1 } as Misspelt))();
    await expect(outcome).rejects.toThrow(NAME);
  });
});
