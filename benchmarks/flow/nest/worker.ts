import 'reflect-metadata';
import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrismaService } from './prisma.service.js';
import { WebhooksProcessor } from './webhooks.processor.js';

@Module({
  imports: [BullModule.forRoot({ connection: { url: process.env['REDIS_URL'] } }), BullModule.registerQueue({ name: 'webhooks' })],
  providers: [PrismaService, WebhooksProcessor],
})
class WorkerModule {}

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
