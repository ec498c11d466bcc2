//! Nothing is ignored: parameters that an action does not have, or that are not emulated, are refused.

use crate::rig::Rig;

const ECS: &str = "x-amz-target: AmazonEC2ContainerServiceV20141113.DescribeContainerInstances";
const LOGS: &str = "x-amz-target: Logs_20140328.GetLogEvents";
const PRICES: &str = "x-amz-target: AWSPriceListService.GetProducts";
const QUOTAS: &str = "x-amz-target: ServiceQuotasV20190624.GetServiceQuota";

const OFFERINGS: &str = "DescribeInstanceTypeOfferings&LocationType=availability-zone";

impl Rig {
    async fn refused(&self, path: &str, header: &str, body: &str, words: &str) {
        let (status, head, answer) = self.raw(path, header, body).await;
        let answer = answer.replace("&apos;", "'");
        assert!(status == 400 && answer.contains(words), "{path} {header} {body}: {status} {answer}");
        assert!(head.to_lowercase().contains("x-amzn-requestid: "), "{path}: {head}");
    }

    async fn answered(&self, path: &str, header: &str, body: &str, words: &str) {
        let (status, head, answer) = self.raw(path, header, body).await;
        assert!(status == 200 && answer.contains(words), "{path} {header} {body}: {status} {answer}");
        assert!(head.to_lowercase().contains("x-amzn-requestid: "), "{path}: {head}");
    }
}

#[tokio::test]
async fn every_action_of_ec2_refuses_parameters_that_have_no_effect() {
    let rig = Rig::new().await;
    let cases = [
        ("DescribeInstances&DryRun=true", "DryRun of DescribeInstances is not emulated"),
        ("DescribeInstances&Filter.1.Value.1=running", "The filter 'null' is invalid"),
        ("DescribeInstances&Filter.1.Name=instance-id", "The filter 'instance-id' is invalid"),
        ("DescribeInstances&Filter.3.Name=no-such&Filter.3.Value.1=x", "The filter 'no-such' is invalid"),
        ("DescribeInstances&MaxResults=4", "Expecting a value between 5 and 1000"),
        ("DescribeInstances&NextToken=x", "InvalidNextToken"),
        ("TerminateInstances&InstanceId.1=i-1&SkipOsShutdown=true", "SkipOsShutdown of TerminateInstances"),
        ("DescribeAvailabilityZones&AllAvailabilityZones=true", "AllAvailabilityZones of Describe"),
        ("DescribeAvailabilityZones&ZoneName.1=mars", "Invalid availability zone: [mars]"),
        ("DescribeAvailabilityZones&Filter.1.Name=zone-id&Filter.1.Value.1=x", "The filter 'zone-id' is invalid"),
        (
            "DescribeInstanceTypeOfferings&Filter.1.Name=instance-type&Filter.1.Value.1=g5.xlarge",
            "LocationType region is",
        ),
        (OFFERINGS, "Give the filter instance-type"),
        ("DescribeInstanceTypeOfferings&LocationType=availability-zone&MaxResults=5", "MaxResults of Describe"),
        ("DescribeSubnets&SubnetId.1=subnet-0a", "InvalidSubnetID.NotFound"),
        ("DescribeSubnets&Filter.1.Name=vpc-id&Filter.1.Value.1=x", "The filter 'vpc-id' is invalid"),
        ("DescribeSpotPriceHistory&Filter.1.Name=x&Filter.1.Value.1=y", "Filter.1.Name of DescribeSpot"),
        ("DescribeSpotPriceHistory&AvailabilityZone=mars", "InvalidZone.NotFound"),
        ("DescribeSpotPriceHistory&StartTime=2026-02-01T00:00:00Z&EndTime=2026-01-01T00:00:00Z", "after EndTime"),
        ("DescribeSpotPriceHistory&MaxResults=0", "parameter maxResults is invalid"),
        ("DescribeSpotPriceHistory&NextToken=x", "InvalidNextToken"),
        ("CreateVolume&AvailabilityZone=us-east-1a&Size=1&Iops=4000", "Iops of CreateVolume"),
        ("CreateVolume&AvailabilityZone=us-east-1a&Size=1&KmsKeyId=x", "KmsKeyId of CreateVolume"),
        ("DescribeVolumes&IncludeManagedResources=true", "IncludeManagedResources of DescribeVolumes"),
        ("AttachVolume&VolumeId=vol-1&InstanceId=i-1&Device=/dev/sdf&EbsCardIndex=1", "EbsCardIndex of AttachVolume"),
        ("DetachVolume&VolumeId=vol-1&DryRun=true", "DryRun of DetachVolume"),
        ("DeleteVolume&VolumeId=vol-1&DryRun=true", "DryRun of DeleteVolume"),
        ("CreateSnapshot&VolumeId=vol-1&Location=local", "Location of CreateSnapshot"),
        ("DescribeSnapshots&RestorableBy.1=self", "RestorableBy.1 of DescribeSnapshots"),
        ("DescribeSnapshots&Owner.1=amazon", "The owner 'amazon' is not emulated"),
        ("DeleteSnapshot&SnapshotId=snap-1&DryRun=true", "DryRun of DeleteSnapshot"),
        ("CreateTags&ResourceId.1=vol-1&Tag.1.Key=a&Tag.2.Key=a", "Duplicate tag key 'a' specified."),
        ("CreateTags&ResourceId.1=vol-1&Tag.1.Key=aws:a", "reserved"),
        ("CreateTags&ResourceId.1=vol-1&Tag.1.Key=a&DryRun=true", "DryRun of CreateTags"),
    ];
    for (request, words) in cases {
        rig.refused("", "", &format!("Version=2016-11-15&Action={request}"), words).await;
    }
    let history =
        "DescribeSpotPriceHistory&InstanceType.1=c7i.large&InstanceType.2=g5.xlarge&StartTime=2026-01-01T00:00:00Z";
    let answered = [
        (format!("{history}&AvailabilityZone=us-east-1b&MaxResults=1"), "<nextToken>price-1</nextToken>"),
        (format!("{history}&AvailabilityZone=us-east-1b&MaxResults=1&NextToken=price-1"), "g5.xlarge"),
        (format!("{history}&EndTime=2026-01-02T00:00:00Z"), "<nextToken></nextToken>"),
        ("DescribeAvailabilityZones&Filter.2.Name=zone-name&Filter.2.Value.7=*1b".to_owned(), "us-east-1b"),
        ("DescribeInstances".to_owned(), "<requestId>"),
        (format!("{OFFERINGS}&Filter.1.Name=instance-type&Filter.1.Value.1=g5.*"), "g5.48xlarge"),
        ("DescribeSubnets&Filter.1.Name=default-for-az&Filter.1.Value.1=true".to_owned(), "subnet-us-east-1c"),
    ];
    for (request, words) in answered {
        rig.answered("", "", &format!("Action={request}"), words).await;
    }
    let zones = "Action=DescribeAvailabilityZones&Filter.1.Name=zone-name&Filter.1.Value.1=*1b";
    assert!(!rig.raw("", "", zones).await.2.contains("us-east-1a"), "the filter chooses");
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn the_actions_for_jobs_refuse_members_that_have_no_effect() {
    let rig = Rig::new().await;
    let tags: serde_json::Map<_, _> = (0..51).map(|n| (n.to_string(), "".into())).collect();
    let tags = serde_json::Value::Object(tags).to_string();
    let cases = [
        ("submitjob", r#""jobName":"a","shareIdentifier":"x""#.to_owned(), "shareIdentifier"),
        ("submitjob", r#""jobName":"a","containerOverrides":{"instanceType":"x"}"#.to_owned(), "instanceType"),
        ("submitjob", format!(r#""jobName":"a","tags":{tags}"#), "More than 50 tags"),
        ("submitjob", r#""jobName":"a","tags":{"aws:x":"y"}"#.to_owned(), "reserved for AWS"),
        ("describejobs", r#""jobs":["x"],"maxResults":1"#.to_owned(), "maxResults"),
        ("listjobs", r#""jobQueue":"queue","multiNodeJobId":"x""#.to_owned(), "multiNodeJobId"),
        ("listjobs", r#""jobQueue":"queue","maxResults":1001"#.to_owned(), "between 1 and 1000"),
        ("listjobs", r#""jobQueue":"queue","nextToken":"x""#.to_owned(), "Invalid NextToken"),
        ("canceljob", r#""jobId":"x","reason":"y","force":true"#.to_owned(), "force"),
        ("terminatejob", r#""jobId":"x","reason":"y","force":true"#.to_owned(), "force"),
        (
            "registerjobdefinition",
            r#""jobDefinitionName":"a","type":"container","nodeProperties":{}"#.to_owned(),
            "nodeProperties",
        ),
        (
            "registerjobdefinition",
            r#""jobDefinitionName":"a","type":"container","platformCapabilities":["FARGATE"]"#.to_owned(),
            "'FARGATE'",
        ),
        (
            "registerjobdefinition",
            r#""jobDefinitionName":"a","type":"container","containerProperties":{"image":"a","ephemeralStorage":{}}"#
                .to_owned(),
            "ephemeralStorage",
        ),
        ("deregisterjobdefinition", r#""jobDefinition":"x","force":true"#.to_owned(), "force"),
        ("describejobdefinitions", r#""jobDefinitions":["x"],"jobDefinitionName":"x""#.to_owned(), "other parameters"),
        ("describejobdefinitions", r#""maxResults":101"#.to_owned(), "between 1 and 100"),
    ];
    for (action, members, words) in cases {
        rig.refused(&format!("v1/{action}"), "", &format!("{{{members}}}"), words).await;
    }
    let definition = r#"{"jobDefinitionName":"tagged","type":"container","propagateTags":true,"containerProperties":
        {"image":"a","resourceRequirements":[{"type":"VCPU","value":"1"},{"type":"MEMORY","value":"4"}]}}"#;
    rig.answered("v1/registerjobdefinition", "", definition, r#""revision":1"#).await;
    let tagged = r#"{"jobDefinitionName":"tagged"}"#;
    rig.answered("v1/describejobdefinitions", "", tagged, r#""propagateTags":true"#).await;
    rig.answered("v1/describejobdefinitions", "", tagged, r#""secrets":[]"#).await;
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn queues_and_environments_need_what_batch_needs_and_take_nothing_else() {
    let rig = Rig::new().await;
    let resources = r#"{"type":"SPOT","maxvCpus":1,"subnets":["subnet-us-east-1a"],"instanceTypes":["c7i.large"]"#;
    let cases = [
        ("describejobqueues", r#""maxResults":0"#.to_owned(), "between 1 and 100"),
        ("describejobqueues", r#""status":"VALID""#.to_owned(), "status"),
        ("describecomputeenvironments", r#""nextToken":"x""#.to_owned(), "Invalid NextToken"),
        ("createjobqueue", r#""jobQueueName":"b""#.to_owned(), "'priority' is a required field"),
        ("createjobqueue", r#""jobQueueName":"b","priority":1"#.to_owned(), "1 to 3 entries"),
        (
            "createjobqueue",
            r#""jobQueueName":"b","priority":1,"schedulingPolicyArn":"x""#.to_owned(),
            "schedulingPolicyArn",
        ),
        (
            "createcomputeenvironment",
            format!(r#""computeEnvironmentName":"c","type":"MANAGED","computeResources":{resources}}}"#),
            "instanceRole is required",
        ),
        (
            "createcomputeenvironment",
            format!(
                r#""computeEnvironmentName":"c","type":"MANAGED","computeResources":{resources},"instanceRole":"r","placementGroup":"p"}}"#
            ),
            "placementGroup",
        ),
        (
            "createcomputeenvironment",
            r#""computeEnvironmentName":"c","type":"MANAGED","computeResources":{"type":"SPOT","maxvCpus":1}"#
                .to_owned(),
            "subnets",
        ),
        ("createcomputeenvironment", r#""computeEnvironmentName":"c","type":"UNMANAGED""#.to_owned(), "UNMANAGED"),
    ];
    for (action, members, words) in cases {
        rig.refused(&format!("v1/{action}"), "", &format!("{{{members}}}"), words).await;
    }
    rig.answered("v1/describejobqueues", "", "{}", r#""jobQueueName":"queue""#).await;
    rig.emulator.shutdown().await;
}

#[tokio::test]
async fn the_other_services_refuse_members_that_have_no_effect() {
    let rig = Rig::new().await;
    let stream = r#""logGroupName":"/aws/batch/job","logStreamName":"shell/default/1","startFromHead":true"#;
    let products = r#""ServiceCode":"AmazonEC2""#;
    let cases = [
        (ECS, r#""cluster":"x","include":["TAGS"]"#.to_owned(), "include"),
        (LOGS, format!(r#"{stream},"unmask":true"#), "unmask"),
        (LOGS, stream.replace("/aws/batch/job", "/other"), "log group does not exist"),
        (LOGS, stream.to_owned(), "log stream does not exist"),
        (LOGS, format!(r#"{stream},"limit":0"#), "between 1 and 10000"),
        (PRICES, format!(r#"{products},"MaxResults":1"#), "MaxResults"),
        (QUOTAS, r#""ServiceCode":"ec2","QuotaCode":"L-1","ContextId":"x""#.to_owned(), "ContextId"),
        (QUOTAS, r#""ServiceCode":"ec2","QuotaCode":"L-1""#.to_owned(), "NoSuchResourceException"),
        (QUOTAS, r#""ServiceCode":"vpc","QuotaCode":"L-1""#.to_owned(), "vpc is not emulated"),
        (PRICES, products.replace("EC2", "S3"), "AmazonS3 is not emulated"),
        (
            PRICES,
            format!(r#"{products},"Filters":[{{"Type":"TERM_MATCH","Field":"tenancy","Value":"Host"}}]"#),
            "tenancy TERM_MATCH Host is not emulated",
        ),
    ];
    for (target, members, words) in cases {
        rig.refused("", target, &format!("{{{members}}}"), words).await;
    }
    let job = rig.submit("echo one; echo two; echo three", 1).await;
    let job = rig.wait_for(&job, aws_sdk_batch::types::JobStatus::Succeeded).await;
    let name = job.attempts()[0].container().unwrap().log_stream_name().unwrap();
    let stream = stream.replace("shell/default/1", name);
    let (_, _, page) = rig.raw("", LOGS, &format!(r#"{{{stream},"limit":2}}"#)).await;
    assert!(page.contains("two") && !page.contains("three"), "{page}");
    let (_, _, page) = rig.raw("", LOGS, &format!(r#"{{{stream},"endTime":1}}"#)).await;
    assert!(page.contains(r#""events":[]"#), "{page}");
    let listed = rig.raw("v1/listjobs", "", r#"{"jobQueue":"queue","jobStatus":"SUCCEEDED"}"#).await.2;
    assert!(listed.contains(r#""container":{"exitCode":0}"#), "{listed}");
    rig.emulator.shutdown().await;
}
