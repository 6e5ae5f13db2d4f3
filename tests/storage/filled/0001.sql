-- Rows as version 1 of the schema holds them. Never edited: old databases are not either.
INSERT INTO "events" VALUES(1,'0000000A-0000-4000-8000-000000000000','scope1','Reboot','Scheduled','Platform','["vm1"]',1767613500000000,1767614400000000,'a line',9000001,1,'vm:vm1',1767614340000000,0,'work',NULL,NULL,NULL,'');
INSERT INTO "events" VALUES(2,'0000000B-0000-4000-8000-000000000000','scope1','Preempt','Started','Platform','["vm2"]',1767613500000000,NULL,'',NULL,1,NULL,NULL,NULL,NULL,1767613560000000,'approved',NULL,'');
INSERT INTO "events" VALUES(3,'0000000C-0000-4000-8000-000000000000','scope2','Reboot','Canceled','Platform','["vm3"]',1767613500000000,1767614400000000,'',NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,1767614400000000,'not today');
INSERT INTO "history" VALUES(1,1767610800000000,'operator','127.0.0.1','scheduled','scope1','0000000A-0000-4000-8000-000000000000','Reboot','["vm1"]','');
INSERT INTO "history" VALUES(2,1767614400000000,'operator','127.0.0.1','canceled','scope2','0000000C-0000-4000-8000-000000000000','Reboot','["vm3"]','not today');
INSERT INTO "notes" VALUES('fleet','one');
INSERT INTO "resources" VALUES('vm1','vm1','scope1',0,1,2,'host1','running','Regular','Deallocate',300000000,'10.0.0.1','{"vm_id":"5c1d8a1e","subscription_id":"sub","resource_group":"group","location":"westeurope","size":"Standard_D2s_v5","computer_name":"vm1","os_type":"Windows","zone":"2","scale_set":"set","is_flexible":true,"availability_set":"avset","placement_group_id":"pg","tags":{"env":"test"}}');
INSERT INTO "resources" VALUES('vm2','vm2','scope1',1,0,0,'host2','interrupted','Spot','Delete',NULL,NULL,NULL);
INSERT INTO "resources" VALUES('vm3','vm3','scope2',0,0,0,'host1','running','Regular','Deallocate',NULL,NULL,NULL);
INSERT INTO "scopes" VALUES(1,'scope1','availability_set',1,4,1,1767610800000000,1767614400000000,'{"approves_user_reboot":true,"approves_user_redeploy":false,"approves_when_all_down":false}','{"id":"work","type":"Reboot","duration":"PT9S","description":"a line","notice":"PT900S","remaining":[{"update_domain":3,"event_id":"0000000C-0000-4000-8000-000000000000"}]}');
INSERT INTO "scopes" VALUES(2,'scope2','availability_set',1,1,0,NULL,NULL,'{"approves_user_reboot":false,"approves_user_redeploy":false,"approves_when_all_down":true}',NULL);
