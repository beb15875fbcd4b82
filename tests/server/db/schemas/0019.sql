BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0019');
CREATE TABLE announcements (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	audience JSON NOT NULL, 
	CONSTRAINT pk_announcements PRIMARY KEY (id)
);
INSERT INTO "announcements" VALUES('news-04b3bf044c',1.79491363233603501317e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["ada"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-e786a29e48',1.79491363235763049131e+09,'environment','ada/sums','{"readers": {"everyone": true, "names": ["robots", "ada"]}, "run": null}');
INSERT INTO "announcements" VALUES('news-1',1.0,'source','src-1','{}');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-8247e6ccc2',1,X'7365616C6564');
CREATE TABLE audit_entries (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	user TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	details JSON NOT NULL, 
	token_id TEXT NOT NULL, 
	address TEXT NOT NULL, 
	CONSTRAINT pk_audit_entries PRIMARY KEY (id)
);
INSERT INTO "audit_entries" VALUES('aud-5bdae80ae7',1.79491363010612845416e+09,'','token.add','root','{"name": "first login"}','','');
INSERT INTO "audit_entries" VALUES('aud-5663d8d290',1.79491363223351287842e+09,'root','token.add','root','{"id": "5ca11ee7f7", "name": "", "scopes": ["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"], "expires_at": 1802689632.2319586}','b8f64d974a','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-8999edc474',1.7949136322483239174e+09,'root','user.add','ada','{"is_admin": false}','5ca11ee7f7','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-9592ec3a38',1.79491363226408052449e+09,'ada','team.add','robots','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-ab615a17e4',1.79491363234181165696e+09,'ada','environment.push','ada/sums@0.1.0','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-1ab7b7c4b1',1.7949136323562943935e+09,'ada','role.set','ada/sums','{"holder": "robots", "role": "read"}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-04087ea8a0',1.79491363236979746811e+09,'ada','secret.add','ada SHARED_KEY','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-616271c832',1.79491363238286352156e+09,'ada','secret.link','ada/sums SHARED_KEY','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-a52ac1c37f',1.79491363241052150727e+09,'ada','secret.add','ada/sums SUMS_KEY','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-974457c8b9',1.79491363242346835139e+09,'ada','variable.add','ada/sums REGION','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-34abc841e5',1.79491363243716812135e+09,'root','price.set','parrot','{"input_usd_per_million": 1.0, "output_usd_per_million": 2.0, "cached_usd_per_million": null}','5ca11ee7f7','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-78ff69ab89',1.79491363244352459911e+09,'root','balance.grant','ada','{"amount_usd": 5.0}','5ca11ee7f7','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-180e27ed95',1.79491363252486205107e+09,'ada','run.upload','run-7812c7a597','{}','f4f3515bba','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-3b00c20cf0',1.79491363261564564708e+09,'ada','run.start','run-8247e6ccc2','{"environment": "ada/sums", "model": "parrot"}','f4f3515bba','127.0.0.1');
CREATE TABLE browser_sessions (
	id TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_browser_sessions_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "browser_sessions" VALUES('session-1',X'68617368','5ca11ee7f7',1.0,2.0);
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('a84d0e99a2317b82339e',1.79491363246517539025e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('f4f3515bba','robots',X'014B60B373BC5EAEEDEA4A46D592BF572E7C901075B779A4A717F2291E1F0889E388776A5A0AE0F144000388A8C94A6B9D24A94C38824B762114912E6E680B267EF3BCFCB74EA183AF4572CFE94508B4196C864BA9B9631C66F50C0DA337AB2F5805BE41B2AAC911BDF51B489E6A9358E5865ED2346905DA6B93700751CBDA6B065A54E764',1.79491363226460456849e+09);
CREATE TABLE dataset_uploads (
	id TEXT NOT NULL, 
	person TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	format TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	visibility TEXT, 
	description TEXT, 
	created_at DOUBLE NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_uploads PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_uploads_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "dataset_uploads" VALUES('upload-1','ada','ada','more','jsonl',9,NULL,NULL,1.0,1.0);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-485b71a06e','ada','grant',5000000,NULL,'grant:7cd274c6621d9bddaed3','welcome',1.79491363244271278382e+09);
INSERT INTO "entries" VALUES('ent-a9d6980e46','ada','charge',-3,NULL,'calls:a84d0e99a2317b82339e','',1.79491363248533105853e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-994e952743','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79491363232231545448e+09,1.79491363233223438266e+09,NULL);
CREATE TABLE event_segments (
	run_id TEXT NOT NULL, 
	first_seq INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	CONSTRAINT pk_event_segments PRIMARY KEY (run_id, first_seq), 
	CONSTRAINT fk_event_segments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "event_segments" VALUES('run-8247e6ccc2',1000001,1000009,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',9);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-7812c7a597',1,X'7B22736571223A312C226174223A313739343931333633322E353035363334332C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-7812c7a597',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-7812c7a597',3,X'7B22736571223A332C226174223A313739343931333633322E353439373433342C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-7812c7a597',4,X'7B22736571223A342C226174223A313739343931333633322E353439373433342C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-7812c7a597',5,X'7B22736571223A352C226174223A313739343931333633322E353439373433342C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-7812c7a597',6,X'7B22736571223A362C226174223A313739343931333633322E353638383937322C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-8247e6ccc2',1,X'7B22736571223A312C226174223A313739343931333633322E363038333737352C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-8247e6ccc2',2,X'7B22736571223A322C226174223A313739343931333633322E36313630352C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420746861742063616E20706C61792072756E7320697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E65726020286F6E6520746861742072756E7320616C7265616479206C6F67732077686174206974206C61636B73292C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE files (
	sha256 TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_files PRIMARY KEY (sha256), 
	CONSTRAINT uq_files_key UNIQUE ("key")
);
INSERT INTO "files" VALUES('a8b59eeb2bbd91c76736e5fb96f48ce7c294454dd964072731c37dac6f057332','a8/a8b59eeb2bbd91c76736e5fb96f48ce7c294454dd964072731c37dac6f057332-97886c94',918,1.79491363231529402729e+09);
INSERT INTO "files" VALUES('eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40','ea/eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40-06373f8f',217,1794913632.31585);
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-8247e6ccc2','ada',1000000);
CREATE TABLE leases (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	until DOUBLE NOT NULL, 
	is_wanted BOOLEAN NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('sweep','server-1',1,1.0,0);
CREATE TABLE login_codes (
	code_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_login_codes PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_codes_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "login_codes" VALUES(X'FAEF5CACC5714B507F2239E7B5CA84AF1C0AED26F2FF8C939E9AF4B0B74A88A1','8fed253259',1.79491363011486506455e+09,1.79491723011486506468e+09,NULL);
INSERT INTO "login_codes" VALUES(X'68617368','5ca11ee7f7',1.0,2.0,NULL);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-8247e6ccc2','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-8247e6ccc2',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-994e952743','robots','read');
CREATE TABLE rollout_entries (
	run_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	entry BLOB NOT NULL, 
	CONSTRAINT pk_rollout_entries PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_rollout_entries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollout_entries" VALUES('run-7812c7a597',1,X'92DC00140100A673636F726564CB3FF0000000000000CB0000000000000000CB000000000000000000000001C081A57269676874CB3FF0000000000000A0A0A0A0A0A0A0A0969400000000C0C0808080');
INSERT INTO "rollout_entries" VALUES('run-7812c7a597',2,X'92DC0014A374776F00AB6D6F64656C5F6572726F72C0CB0000000000000000CB000000000000000000000001C080AA4D6F64656C4572726F72A0A0A0A0A0A0A096940000000084A56572726F72AA4D6F64656C4572726F72A76D657373616765A0A57068617365A0A86C6F636174696F6EA0C0808080');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, segment INTEGER, segment_start BIGINT, segment_bytes INTEGER, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-7812c7a597','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7',NULL,NULL,NULL);
INSERT INTO "rollouts" VALUES('run-7812c7a597','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F',NULL,NULL,NULL);
CREATE TABLE run_comments (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	task_key TEXT, 
	number INTEGER, 
	step INTEGER, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	edited_at DOUBLE, 
	deleted_at DOUBLE, 
	deleted_by TEXT, 
	CONSTRAINT pk_run_comments PRIMARY KEY (id), 
	CONSTRAINT fk_run_comments_author FOREIGN KEY(author) REFERENCES users (name), 
	CONSTRAINT fk_run_comments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_comments" VALUES('comment-1','run-8247e6ccc2','0000000000000000',0,NULL,'ada','why?',1.0,NULL,NULL,NULL);
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-8247e6ccc2','content-1');
CREATE TABLE run_labels (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	person TEXT NOT NULL, 
	score DOUBLE, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_labels PRIMARY KEY (run_id, task, number, person), 
	CONSTRAINT fk_run_labels_person FOREIGN KEY(person) REFERENCES users (name), 
	CONSTRAINT fk_run_labels_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_labels" VALUES('run-8247e6ccc2','0',0,'ada',1.0,'right',1.0);
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-8247e6ccc2',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_origins (
	run_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	entrypoint TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	dataset JSON NOT NULL, 
	config_hash TEXT NOT NULL, 
	recipe JSON NOT NULL, 
	CONSTRAINT pk_run_origins PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_origins_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_origins" VALUES('run-8247e6ccc2','ada/agents','/srv/agents','math','main.py','c0ffee','main','{"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "selected_rows": 4}','abc','{}');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-8247e6ccc2','OWN_KEY',X'016BAEF587EAD3BA4827BEEBFDA3F5ADFEE699EB5034E53BFA922BE405FA7ED55995AE');
CREATE TABLE run_segments (
	run_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	CONSTRAINT pk_run_segments PRIMARY KEY (run_id, number), 
	CONSTRAINT fk_run_segments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_segments" VALUES('run-8247e6ccc2',1,'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',9);
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, score JSON, suite TEXT, tags JSON, note TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '0' NOT NULL, edited_at DOUBLE, editors JSON, rescored_from TEXT, archived_at DOUBLE, log_read_at DOUBLE, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-7812c7a597','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}, "reused_replies": {}, "saved_usd": null, "rewards": null}',1.79491363250563430785e+09,1.79491363250563430785e+09,1.79491363256889724731e+09,1428,69,'private','{"mean": 1.0, "interval": null, "tasks": 1, "coverage": null}',NULL,NULL,'',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('run-8247e6ccc2','hosted','nightly','ada',NULL,'env-994e952743','ver-d239a40696','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79491363260837745669e+09,NULL,NULL,0,0,'private',NULL,NULL,NULL,'',0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'0187EF7DE0600F263139AA0E7C9D60F5B1CF3CF7C1E673C03D5C910FED2DD13E41A6BF0A',1.79491363003255510332e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-994e952743','sec-22408bdb20');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-22408bdb20','ada',NULL,'SHARED_KEY',X'01227B7355541AEEBA46020ECFF378ADB3D7004E9A332B067D25CE93EA64435BBFFE','',1.7949136323670010567e+09,1.7949136323670010567e+09);
INSERT INTO "secrets" VALUES('sec-4f45cf4ec0',NULL,'env-994e952743','SUMS_KEY',X'01B5CB282C0C0A3F74364D3E05185533D9C9F24F0A74FB0F6528438A78034E6E249AB8432B','of the sums',1.79491363240921163561e+09,1.79491363240921163561e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('oldest_release','0017');
INSERT INTO "server_settings" VALUES('run_policy','readers');
INSERT INTO "server_settings" VALUES('storage','folder');
INSERT INTO "server_settings" VALUES('storage_listed_at','1794913632.1967504');
CREATE TABLE servers (
	id TEXT NOT NULL, 
	server TEXT NOT NULL, 
	url TEXT NOT NULL, 
	version TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	CONSTRAINT pk_servers PRIMARY KEY (id)
);
INSERT INTO "servers" VALUES('process-1','server-1','http://a','0.1.0',1.0,2.0);
CREATE TABLE source_builds (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	files JSON NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_source_builds PRIMARY KEY (source_id, commit_sha, rollout), 
	CONSTRAINT fk_source_builds_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_builds_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "source_builds" VALUES('src-1','c0ffee','math','ver-d239a40696','["main.py"]','Ada','Begin');
CREATE TABLE source_commits (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE NOT NULL, 
	rollouts JSON NOT NULL, 
	recipes JSON NOT NULL, 
	fetched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_source_commits PRIMARY KEY (source_id, commit_sha), 
	CONSTRAINT fk_source_commits_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_commits" VALUES('src-1','c0ffee','Ada','Begin',1.0,'["math"]','[]',1.0);
CREATE TABLE source_syncs (
	id TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	status TEXT NOT NULL, 
	log JSON NOT NULL, 
	commit_sha TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	ended_at DOUBLE, server TEXT, 
	CONSTRAINT pk_source_syncs PRIMARY KEY (id), 
	CONSTRAINT fk_source_syncs_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_syncs" VALUES('sync-1','src-1','ada','main','done','[]','c0ffee',1.0,2.0,NULL);
CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	has_credentials BOOLEAN NOT NULL, 
	known_hosts TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE, 
	rollouts JSON NOT NULL, 
	problem TEXT NOT NULL, 
	synced_at DOUBLE, 
	created_at DOUBLE NOT NULL, branches JSON DEFAULT '[]' NOT NULL, history JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT fk_sources_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_sources_owner_name UNIQUE (owner, name)
);
INSERT INTO "sources" VALUES('src-1','ada','agents','file:///srv/agents','/srv/agents',X'7365616C6564',0,'','main','c0ffee','Ada','Begin',NULL,'["math"]','',NULL,1.0,'[]','[]');
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-d337574d36','robots',1.79491363226244282722e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('b8f64d974a','first',X'15D72BF6B07624280A3EC5AFF394F1C1304D19E05D851B3376EE95365D057F19','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79491363010277366635e+09,NULL,1.79491363221704053874e+09,1.79491363222619342799e+09,NULL);
INSERT INTO "tokens" VALUES('8fed253259','user',X'D958E63E6064AF3554723616E1D268047EA47981CBB92C9192188CFECAD57451','root',NULL,NULL,'dashboard','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79491363011510968207e+09,1.80268963011486506465e+09,NULL,NULL,NULL);
INSERT INTO "tokens" VALUES('5ca11ee7f7','user',X'A64C6370C6B8FF68CF24B42A7CD9E45BDDCCBE7926746FA4AF426ACDC8C9E456','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79491363223202323915e+09,1.80268963223195862769e+09,1.79491363224257659911e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('f4f3515bba','user',X'C39D2D516AE8DF91907334B63E7E46717BF498A0705CE115B7AF6DB8242BE3FE','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79491363224759221074e+09,1.80268963224725532528e+09,1.79491363225418090821e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-36dec65910','root',1,1.7949136300953164101e+09,NULL);
INSERT INTO "users" VALUES('usr-a815968eb0','ada',0,1.79491363224725532536e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-7550c32c6b','env-994e952743','REGION','north',1794913632.42082,1794913632.42082);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-d239a40696',0,'sum',X'7B7D');
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, check_details BLOB, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-d239a40696','env-994e952743','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','a8b59eeb2bbd91c76736e5fb96f48ce7c294454dd964072731c37dac6f057332',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79491363232939648633e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
CREATE INDEX ix_run_origins_repository ON run_origins (repository);
CREATE INDEX ix_run_origins_config_hash ON run_origins (config_hash);
CREATE INDEX ix_browser_sessions_token_id ON browser_sessions (token_id);
CREATE INDEX ix_login_codes_token_id ON login_codes (token_id);
CREATE INDEX ix_runs_suite ON runs (suite);
CREATE INDEX ix_run_labels_person ON run_labels (person);
CREATE INDEX ix_runs_edited_at ON runs (edited_at);
CREATE INDEX ix_run_comments_run_id ON run_comments (run_id, created_at, id);
CREATE INDEX ix_run_comments_author ON run_comments (author);
CREATE INDEX ix_audit_entries_at ON audit_entries (at, id);
CREATE INDEX ix_audit_entries_user ON audit_entries (user, at);
CREATE INDEX ix_dataset_uploads_person ON dataset_uploads (person);
CREATE INDEX ix_source_syncs_source_id ON source_syncs (source_id, started_at);
CREATE INDEX ix_runs_rescored_from ON runs (rescored_from);
CREATE INDEX ix_announcements_at ON announcements (at);
CREATE INDEX ix_files_touched_at ON files (touched_at);
CREATE INDEX ix_run_segments_sha256 ON run_segments (sha256);
CREATE INDEX ix_event_segments_sha256 ON event_segments (sha256);
COMMIT;
